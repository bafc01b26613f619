"""Verbs by what they say about an event.

Cues need to tell "Alice will send" (a promise) from "The cache will send" (a description). No
word list can do that for every subject, so the lists hold verbs that are mostly said of people.
"""

# What people promise to do.
PROMISE = """
    send write draft prepare share circulate follow check talk ask review investigate look schedule
    ping reach update open file own lead organise organize arrange deliver finish complete fix
    publish ship produce provide present contact call email mail sync take bring find collect book
    confirm submit propose document test try run rerun get set put create make add remove
    build implement
    deploy release migrate move merge clean close work start drive coordinate help handle report
    estimate research explore summarise summarize announce post push raise invite speak discuss
    meet forward translate sign order buy hire train demo show rewrite refactor rename
    rebase backport bump upgrade cut tag triage reproduce analyse analyze compare measure
    benchmark evaluate audit verify validate collate compile gather record transcribe clarify
    define design sketch model prototype plan outline list describe explain approve edit change
    switch turn enable disable install configure monitor track watch pick tackle address resolve
    sort figure dig land respond reply answer revisit introduce notify remind
    chase escalate negotiate interview survey join give tell let speak host chair facilitate
    attend cover continue keep
    sponsor decide amend revise rework restore roll print pay invoice ring pull split replace
    convert count
"""

# Things delivered: said of "we" and "the team" these are promises, not descriptions of a design.
DELIVER = """
    send share circulate deliver finish complete fix publish ship release launch provide prepare
    follow schedule present announce draft review investigate report submit meet contact deploy
    migrate reply confirm demo
"""

# "We will <this>" sets a direction.
CHOOSE = """
    use adopt go choose stick keep drop support standardise standardize switch replace retire
    deprecate discontinue continue abandon postpone defer charge require allow base build store
    host run move rely introduce treat prefer make implement
"""

# Completed work, as participle or past tense.
DONE = r"""
    deployed shipped released merged completed finished fixed implemented migrated delivered
    launched published resolved landed uploaded submitted installed refactored
    benchmarked backported patched provisioned configured automated documented
    signed(?!\s(?:in|up|on|off)\b)
    sent wrote written built created filed tested posted reran rerun ran
    rewrote drafted circulated verified cleaned triaged tagged archived restored
    onboarded trained surveyed audited pushed
"""
# Those that hardly ever describe a state: strong enough without a person as subject.
DONE_STRONG = """
    deployed shipped released merged completed finished fixed delivered launched published
    landed uploaded submitted migrated resolved patched backported
"""

# Modifications, as participle or past tense.
CHANGED = """
    changed moved switched renamed replaced increased reduced raised lowered
    postponed delayed rescheduled dropped bumped downgraded upgraded pivoted extended shortened
    deprecated superseded reverted reworked redefined updated converted swapped relaxed
    tightened
    removed retired added split narrowed widened trimmed doubled halved
"""
# Those that say by themselves that something is now different.
CHANGED_STRONG = """
    renamed replaced postponed rescheduled delayed pivoted superseded reverted deprecated retired
"""

# First-person verbs that, without a date, only steer a conversation ("I'll show you").
CONDUCT = """
    show give go put get take use tell let find try keep call start walk do pass bring turn move
    come stop begin read explain answer speak ask discuss talk meet help make run add set
    continue cut pick present pull push list describe remind repeat remember change pivot proceed
    return allow quote draw load think join volunteer state confirm check watch clear report decide
    propose plan define
"""

# First words of an imperative task ("Send the report"): promises and a few more.
IMPERATIVE = (
    PROMISE
    + """
    use go adopt drop avoid ensure allow support require need choose prefer switch stop begin
    double-check consider rename delete disallow name
"""
)

# "I will <this>" is conversation, not a promise.
SMALL_TALK = """
    say admit be like have assume guess see know think love need agree just also probably
    never not try honest want hope wait skip argue note mention leave miss
"""
