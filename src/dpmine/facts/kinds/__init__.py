"""The kinds of attributes, one file each."""
