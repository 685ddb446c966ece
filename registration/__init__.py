"""Build the webhook configurations, which tell the API server when to call Berth, from the catalog's
resource names; pure text and mappings."""
