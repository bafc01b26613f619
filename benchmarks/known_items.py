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

# Written later, so that a difference of five points can be told from chance; also before search was
# asked any of them.
_KEP = "keps__sig-"
_LANG = "design-meeting-minutes__"
DEMO |= {
    "passkeys through a hosted broker": "adr-014-sign-in.md",
    "How long does a session last before one signs in again?": "adr-014-sign-in.md",
    "which fallback for devices without a passkey": "adr-014-sign-in.md",
    "places that still read the old session cookie": "email-alice-auth-status.txt",
    "audit log export is not promised": "email-alice-auth-status.txt",
    "the vendor's sandbox was down": "email-alice-auth-status.txt",
    "buttons are on the wrong side in Hebrew": "note-beta-voices.md",
    "a customer's name is garbled on the tablet": "note-beta-voices.md",
    "Who likes the high-contrast theme?": "note-beta-voices.md",
    "who is the sponsor of Lantern": "lantern-kickoff-minutes.md",
    "what is in the beta and what is not": "beta-scope.md",
    "data processing agreement with the identity broker": "email-legal-keyhaven-dpa.txt",
    "grandfathering of existing customers' prices": "pricing-model.md",
    "responsibilities of each person on the project": "lantern-roles.md",
    "prompt injection in a customer's comment": "note-feedback-form-triage.md",
    "known issues of the first beta release": "release-notes-beta.md",
}
CORPUS |= {
    "How many subnets does each VPC have?": f"{_AWS}0003-aws-networking-outline.md",
    "IP ranges of integration, staging and production": f"{_AWS}0003-aws-networking-outline.md",
    "bootstrap Jenkins and Puppet in a fresh account": (
        f"{_AWS}0009-environment-bootstrapping-process.md"
    ),
    "Where does the Performance Platform keep its data?": (
        f"{_AWS}0020-merge-api-postgresql-instance-into-main-postgresql-instance.md"
    ),
    "automatic renewal of certificates": (
        f"{_AWS}0021-use-acm-for-ssl-purchases-and-terminate-certificates-on-elbs.md"
    ),
    "what to call a firewall rule in Terraform": f"{_AWS}0031-security-group-naming.md",
    "copying release binaries between S3 buckets": f"{_AWS}0032-transfer-artefact-binary.md",
    "translations of a document are separate documents": f"{_ADR}0003-initial-domain-modelling.md",
    "replacing Whitehall with a new publishing application": (
        f"{_ADR}0003-initial-domain-modelling.md"
    ),
    "What belongs in app/models?": f"{_ADR}0007-minimal-model.md",
    "plain Ruby classes that are not ActiveRecord": f"{_ADR}0007-minimal-model.md",
    "foreign keys and on_delete restrict": f"{_ADR}0008-restricted-deletion.md",
    "sending mail in the background with retries": f"{_ADR}0010-sending-email-notifications.md",
    "stop mail from leaving test environments": f"{_ADR}0010-sending-email-notifications.md",
    "component for a download link with file metadata": f"{_ADR}0012-file-attachment-rendering.md",
    "slow requests when all organisations are loaded": f"{_ADR}0015-bulk-data-loading.md",
    "background job that refreshes a cache of contacts": f"{_ADR}0015-bulk-data-loading.md",
    "proposal for several signers of certificate requests": (
        "sig-auth__archive__meeting-notes-2019.md"
    ),
    "secrets that are mounted into the file system, can we do better": (
        "sig-auth__archive__meeting-notes-2019.md"
    ),
    "pod security policy and its future in 2019": "sig-auth__archive__meeting-notes-2019.md",
    "choosing a new tech lead after Frederic left": (
        "sig-instrumentation__archive__meeting-notes-2021.md"
    ),
    "graduation of the custom metrics API": "sig-instrumentation__archive__meeting-notes-2021.md",
    "structured logging migration status": "sig-instrumentation__archive__meeting-notes-2021.md",
    "metrics stability framework and cardinality limits": (
        "sig-instrumentation__archive__meeting-notes-2021.md"
    ),
    "flaky swap tests in CI": "sig-node__archive__ci-subgroup-notes-2024.md",
    "deprecating the NodeFeature label of tests": "sig-node__archive__ci-subgroup-notes-2024.md",
    "triage of node test failures by hosts each week": (
        "sig-node__archive__ci-subgroup-notes-2024.md"
    ),
    "runtimes that cannot resize a container without a restart": (
        "sig-node__archive__meeting-notes-2025.md"
    ),
    "lowering the memory limit below what is used": "sig-node__archive__meeting-notes-2025.md",
    "resource tracking test with 100 pods fails, block 1.14": (
        "sig-node__archive__meeting-notes-2019.md"
    ),
    "point the AWS cloud provider at another API address": (
        "keps__provider-aws__2314-custom-endpoints-support-for-aws-cloud-provider__README.md"
    ),
    "OpenAPI schema defaults for CRDs": f"{_KEP}api-machinery__575-crd-defaulting__README.md",
    "pruning and defaults when reading from etcd": (
        f"{_KEP}api-machinery__575-crd-defaulting__README.md"
    ),
    "label selectors for object and pods metrics of the HPA": (
        f"{_KEP}autoscaling__117-hpa-metrics-specificity__README.md"
    ),
    "ready, serving and terminating conditions in EndpointSlice": (
        f"{_KEP}network__1672-tracking-terminating-endpoints__README.md"
    ),
    "a load balancer that drains gracefully": (
        f"{_KEP}network__1672-tracking-terminating-endpoints__README.md"
    ),
    "policy option of the CPU manager against packing": (
        f"{_KEP}node__2902-cpumanager-distribute-cpus-policy-option__README.md"
    ),
    "bin packing of extended resources": f"{_KEP}scheduling__964-binpacking-priority__README.md",
    "RequestedToCapacityRatio arguments and weights": (
        f"{_KEP}scheduling__964-binpacking-priority__README.md"
    ),
    "improvements of the cgi module": "peps__pep-0222.rst",
    "types.IntegerType should be called types.int": "peps__pep-0294.rst",
    "why was __main__() rejected": "peps__pep-0299.rst",
    "instead of if __name__ == '__main__'": "peps__pep-0299.rst",
    "what is __package__ for": "peps__pep-0366.rst",
    "hooks for lazily imported modules and abstract base classes": "peps__pep-0369.rst",
    "the @ operator on types": "peps__pep-0835.rst",
    "Annotated is too verbose": "peps__pep-0835.rst",
    "status of const evaluation in May 2021": f"{_LANG}2021-05-19-May-updates.md",
    "active groups report to the language team": f"{_LANG}2021-05-19-May-updates.md",
    "a repository template for initiatives": f"{_LANG}2021-09-01-Planning-meeting.md",
    "which design meetings are scheduled for September": f"{_LANG}2021-09-01-Planning-meeting.md",
    "syntax of GATs and where the bounds go": f"{_LANG}2021-10-13-where-the-where.md",
    "backlog bonanza in December": f"{_LANG}2021-12-01-Planning-Meeting.md",
    "never allow unwinding from drop": "minutes__2022-06-14.md",
    "triage with David Barsky": "minutes__2022-06-14.md",
    "a team for operational semantics": "minutes__2022-08-16.md",
    "Who would own what unsafe code means?": "minutes__2022-08-16.md",
    "move keyword for closures that escape": "text__0231-upvar-capture-inference.md",
    "remove the feature gate of struct-like variants": "text__0418-struct-variants.md",
    "warn when a constant expression overflows": "text__1229-compile-time-asserts.md",
    "what counts as a constant evaluation context": "text__1229-compile-time-asserts.md",
    "attribute-like and function-like macros": "text__1566-proc-macros.md",
    "TokenStream API for compiler plugins": "text__1566-proc-macros.md",
    "refer to the type itself in its own enum": "text__2300-self-in-typedefs.md",
    "maturity, governance debt and long requested features": "text__2657-roadmap-2019.md",
    "what the 2018 survey says Rust should do next": "text__2657-roadmap-2019.md",
}
