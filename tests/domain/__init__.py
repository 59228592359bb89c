"""Tests of ``engine.domain``, the folds that deciders and views share."""
