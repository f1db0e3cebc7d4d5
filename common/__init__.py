"""What is not about sentences or encoders: settings, errors, files, progress, the entry point."""
