"""The Grafana dashboard as code: what it asks, what it shows, and the JSON that Grafana imports."""
