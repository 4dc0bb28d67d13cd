"""The built wheel as people install it: every command, without extras and with each."""
