"""The interfaces to LightGBM and XGBoost; no other package depends on a booster."""
