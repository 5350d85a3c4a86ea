"""`waitreg reconcile`: where each published record ended, judged from outside."""
