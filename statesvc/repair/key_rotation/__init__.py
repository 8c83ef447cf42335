"""Master key rotation: everything that is sealed under an older master key is sealed again under the current one."""
