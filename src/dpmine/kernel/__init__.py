"""The trusted part: the only code that sees exact numbers and answers outside. Small enough to audit in an afternoon."""
