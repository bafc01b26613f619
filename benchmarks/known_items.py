"""Questions, each with the one document that answers it.

As people ask: some in the words of the document, some in others. Written from the documents'
subjects before anything was measured with them.
"""

DEMO = {
    "How much discount is there for paying a year up front?": "chat-pricing-january.txt",
    "Why do we charge by location and no longer by seat?": "email-pricing-outcome.txt",
    "By when will the penetration test be reported?": "chat-auth-staging.txt",
    "Who is the first contact for bugs in the beta?": "beta-scope.md",
    "How many days' notice before data goes to a sub-processor?": "email-legal-keyhaven-dpa.txt",
    "where do I park this week": "note-standup-parking.md",
    "the list is slow with 1,400 parts": "note-beta-voices.md",
    "What did the operations manager say three days into the beta?": (
        "transcript-brightwater-call.txt"
    ),
    "Which engineer owns the account migration?": "lantern-roles.md",
    "Who sent apologies to the first meeting of the project?": "lantern-kickoff-minutes.md",
    "feedback that tells us to ignore instructions": "note-feedback-form-triage.md",
    "How many workshops were switched over on the first morning?": "release-notes-beta.md",
    "Why is the guide late, and is the December date still good?": "email-thread-q1-promise.txt",
    "options that were considered instead of passwords": "adr-014-sign-in.md",
    "price of the Business plan": "pricing-model.md",
    "two workshops will not switch their second site": "chat-april-holdup.txt",
    "what is Alice willing to be held to": "email-alice-auth-status.txt",
    "What was said about SMS in the review?": "transcript-project-review.txt",
}

_AWS = "docs__architecture__decisions__"
_ADR = "docs__adr__"
CORPUS = {
    "how the network is laid out in AWS": f"{_AWS}0003-aws-networking-outline.md",
    "steps to build an environment from nothing": (
        f"{_AWS}0009-environment-bootstrapping-process.md"
    ),
    "why not a database server of its own for the API": (
        f"{_AWS}0020-merge-api-postgresql-instance-into-main-postgresql-instance.md"
    ),
    "Where do TLS certificates come from, and what terminates them?": (
        f"{_AWS}0021-use-acm-for-ssl-purchases-and-terminate-certificates-on-elbs.md"
    ),
    "naming convention for security groups": f"{_AWS}0031-security-group-naming.md",
    "How do builds get from one environment to the next?": (
        f"{_AWS}0032-transfer-artefact-binary.md"
    ),
    "first model of documents and editions": f"{_ADR}0003-initial-domain-modelling.md",
    "What happens to documents when the user who made them is deleted?": (
        f"{_ADR}0008-restricted-deletion.md"
    ),
    "how editors are told by email": f"{_ADR}0010-sending-email-notifications.md",
    "showing attachments outside Govspeak": f"{_ADR}0012-file-attachment-rendering.md",
    "caching large lists that another API gives": f"{_ADR}0015-bulk-data-loading.md",
    "Eucalyptus and PrivateLink endpoints": (
        "keps__provider-aws__2314-custom-endpoints-support-for-aws-cloud-provider__README.md"
    ),
    "default values for fields of custom resources": (
        "keps__sig-api-machinery__575-crd-defaulting__README.md"
    ),
    "choosing autoscaler metrics by label": (
        "keps__sig-autoscaling__117-hpa-metrics-specificity__README.md"
    ),
    "can traffic still go to pods that are shutting down": (
        "keps__sig-network__1672-tracking-terminating-endpoints__README.md"
    ),
    "spreading CPUs evenly over NUMA nodes": (
        "keps__sig-node__2902-cpumanager-distribute-cpus-policy-option__README.md"
    ),
    "scheduler should pack pods with GPUs tightly": (
        "keps__sig-scheduling__964-binpacking-priority__README.md"
    ),
    "better support for cookies and forms in web programs": "peps__pep-0222.rst",
    "symbolic names for built-in types": "peps__pep-0294.rst",
    "a function that runs when a module is the script": "peps__pep-0299.rst",
    "relative imports with the -m switch": "peps__pep-0366.rst",
    "be called back when a module gets imported": "peps__pep-0369.rst",
    "a shorter way to write metadata of a type": "peps__pep-0835.rst",
    "where clauses after the type alias": "design-meeting-minutes__2021-10-13-where-the-where.md",
    "Are captured variables of a closure moved or borrowed?": (
        "text__0231-upvar-capture-inference.md"
    ),
    "enum variants with named fields": "text__0418-struct-variants.md",
    "checking a condition during compilation": "text__1229-compile-time-asserts.md",
    "macros that are functions over tokens, in their own crate": "text__1566-proc-macros.md",
    "Self inside the definition of a struct": "text__2300-self-in-typedefs.md",
    "theme of the language's work in 2019": "text__2657-roadmap-2019.md",
    "freezing pods on scale-down": "sig-node__archive__meeting-notes-2018.md",
}
