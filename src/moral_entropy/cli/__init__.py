"""The command line: one short function a command, a file a command.

Turns what was typed into options, calls the library, and prints. Heavy imports wait until a command runs.
"""
