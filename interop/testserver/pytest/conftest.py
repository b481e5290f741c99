pytest_plugins = ["pytest_ostler"]
