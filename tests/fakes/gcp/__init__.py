"""A fake of the Google APIs that a listing reads."""
