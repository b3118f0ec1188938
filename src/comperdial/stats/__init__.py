"""Statistics: arrays in, numbers out; imports nothing of ours."""
