"""The process that keeps the engine for plans."""

from engine.process.plans import keeper

keeper.main()
