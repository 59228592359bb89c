"""The process that keeps the engine for plans."""

from engine.process import interpreter_settings

if __name__ == "__main__":
    interpreter_settings.collect_rarely()
    from engine.process.plans import keeper  # loading this module takes most of the start-up time

    keeper.main()
    interpreter_settings.skip_last_collection()
