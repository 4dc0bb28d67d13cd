"""The only hands: carries out what the journal holds. It decides nothing that is not written down."""
