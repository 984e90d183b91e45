"""Where the rows live: the loss of all rows as the alternation needs it."""
