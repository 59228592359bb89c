"""Random scenarios on a real Karmada and on ``reballast up``, whose bindings and Works are compared after each step."""
