"""What can be known of the labels' errors: spot checks, the verdict, the headline figures."""
