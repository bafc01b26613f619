"""Questions about what was decided, promised, done or feared, each with words of the document that
answer it.

As people ask: some in the words of the document, most in others. Not every answer is an event: some
stand only in the text.
"""

ANSWERS = {
    # The demo.
    "What is the discount for paying a whole year at once?": "15% for annual prepayment",
    "Did we keep the password login?": "replace the password login rather than repair it",
    "who may veto changes to credentials": "has a veto on anything that touches credentials",
    "What has to be on staging in January, and who does it?": "new sign-in service to staging",
    "Is there going to be a mobile app?": "No native mobile app in this release",
    "When does Tomás hand over the results of his attack on the sign-in?": (
        "penetration test report to you by Friday 13 February"
    ),
    "load testing the sign-in": "load test with 5,000 sign-ins",
    "who finishes the migration guide now": "I take over the migration guide from Alice",
    "mail to the free accounts postponed": "hold the mail about the free plan limit",
    "How do we charge: by user or by site?": "charge per location instead of per seat",
    "What happens to the free plan in April?": "retire the free plan on 1 April 2026",
    "Which customers will pay a lot more after the change?": "212 customers",
    "What can Marcus promise customers about passkeys?": "passkey sign-in in the hands of the beta",
    "Can sales offer the audit log export?": "audit log export",
    "which vendor runs our identity": "Keyhaven as the hosted identity broker",
    "How long do sessions last when nobody is active?": "Sessions end after 12 hours",
    "Who takes care of the customers in Japan?": "looks after the customers in Japan and Singapore",
    "When would we break off the beta?": "2% of sign-ins fail",
    "totals at the top of the counting screen": "move the totals back to the top",
    "Who reports the problem with the keyboard on grey tablets?": "open a bug for the keyboard",
    "old session cookie inventory": "inventory of every place that reads the old session cookie",
    "What is dangerous about only two people knowing the code?": "January date is at risk",
    "Who will ask resellers in Spain to wait, and why?": "can't open the beta to the Spanish",
    "Japanese help pages": "both Japanese help pages were translated",
    "What did the move of accounts cost in lost accounts?": "moved 1,312 accounts",
    "Are text message codes still there?": "SMS codes are gone",
    "a second region for the broker": "standby region in Frankfurt",
    "What does Keyhaven have to change about sub-processors?": "five days' notice",
    "Who is the person for questions about contracts?": "contact for any contract question",
    "price for customers we already have": "keep their current price until 31 March 2027",
    # Public documents.
    "How many VPCs are there?": "1 VPC per environment",
    "number of private subnets in AWS": "3 private subnets",
    "Should the API have a PostgreSQL server of its own?": (
        "merge the API PostgreSQL instance into the main PostgreSQL instance"
    ),
    "Where is SSL terminated?": "terminate SSL on the ELBs",
    "Which rule names security groups from now on?": 'use "rule 3"',
    "how are translations of a document modelled": "localisations as distinct documents",
    "where is data kept that only some document types have": "schemaless data (JSON)",
    "What happens in the database when something referenced is deleted?": (
        "`restrict` on all foreign key delete actions"
    ),
    "templates for email from GOV.UK publishing": "single, generic template",
    "Which queue sends the mails in the background?": "we will use [Sidekiq]",
    "Where does the code live that shows attachments?": "store the rendering logic",
    "risk of choosing metrics by label in the autoscaler": "metric backend support",
    "What does tracking of terminating endpoints cost?": "additional write per endpoint",
    "When was the autoscaler metrics proposal merged?": "merged for Kubernetes 1.12",
    "old name of the feature gate for distributing CPUs": "CPUManagerPolicyExperimentalOptions",
    "Why was the at sign chosen for annotations of types?": "associates with metadata in Python",
    "What is unfortunate about closures with a second syntax?": (
        "two syntaxes for closures could be seen as unfortunate"
    ),
    "maintenance cost of struct variants for the compiler": "maintenance burden of rustc",
    "theme of the community team for the year": '"solidifying" the theme of the year',
    "who sends the email about the deprecation": "send the deprecation email",
    "thread on the mailing list of sig-auth": "start a thread on kubernetes-sig-auth",
    "who gets approval to remove the old annotation": "approval to remove the old annotation",
    "socket endpoint in the next Kubernetes release": "test the new socket endpoint in 1.13",
    "blog post about Rust to be suggested": "Inside Rust blog post",
    "Who analyses the labels and keys that are logged?": "analysis of present labels/keys",
    "What did the ministers send to the armed forces, and where?": "25 long-term care homes",
    "contracts with companies at home for protective equipment": "24 contracts",
    "who writes up the minutes of the remote control meeting": "minutes of this uh this meeting",
}
