"""The command line: thin, and every command that spends goes through the same door as the library."""
