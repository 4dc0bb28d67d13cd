"""The catalog of a running controller: files read again, listings merged, prices asked for."""
