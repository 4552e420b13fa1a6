"""Prints the documents of a YAML file as JSON, after each has been through the types of the cluster's published API.

A field that they do not know, or know as of another type, is not in what comes back of them.
"""
import json
import sys
import types

import yaml
from kubernetes import client

api = client.ApiClient()
documents = list(yaml.safe_load_all(open(sys.argv[1])))
for document in documents:
    version = document["apiVersion"].split("/")[-1]
    kind = version[0].upper() + version[1:] + document["kind"]
    if not hasattr(client, kind):
        # A resource that is not the cluster's own.
        continue
    answer = types.SimpleNamespace(data=json.dumps(document))
    back = api.sanitize_for_serialization(api.deserialize(answer, kind))
    assert back == document, f"{kind}: the cluster would read\n{back}\nof\n{document}"
json.dump(documents, sys.stdout)
