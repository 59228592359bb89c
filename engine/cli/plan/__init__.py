"""`reballast plan`: the effect of a change, before it is made."""
