"""What survives a restart in status fields: the account of spending, back-offs, quarantines."""
