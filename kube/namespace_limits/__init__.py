"""What a namespace lets its pods request: ``resource_quota`` (ResourceQuota) and ``limit_range`` (LimitRange). The API server checks both
when a pod is created, after all webhooks; a LimitRange also fills in amounts before them."""
