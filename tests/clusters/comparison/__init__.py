"""Random scenarios on a real Karmada and on ``reballast up``, whose states are compared after each step."""
