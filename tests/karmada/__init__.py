"""Beside a real Karmada, if ``REBALLAST_TEST_KARMADA_CONFIG`` names its kubeconfig (see ``tests.clusters``)."""
