"""What the console does: it starts, pauses, resumes and cancels jobs for those who may."""
