"""Silent and failing clusters: taints by policies, their pace, and when nothing is tainted."""
