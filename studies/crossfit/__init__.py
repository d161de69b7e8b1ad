"""One model that beats four: cross-fitting and distillation."""
