"""The alternation that fits every model of factors, and what it is made of."""
