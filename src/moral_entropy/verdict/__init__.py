"""What can be known of the labels' errors: spot checks, crowds alike, the verdict, the headline figures."""
