"""What is wrong from outside (settings, rights, certificates, topics, input), its message, and that nothing is lost."""
