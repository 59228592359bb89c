"""The async shell round the pure folds: reads inputs, has them decided, commits what came out."""
