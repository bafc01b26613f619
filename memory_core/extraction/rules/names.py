"""First names: what makes a capitalised word at the start of a sentence a person.

Names that are English words as well ("Will", "May", "Bill", "Grant") are left out: a person whom
nothing else in the text names is missed sooner than invented.
"""

from memory_core.extraction.rules.patterns import word_set

FIRST_NAMES = word_set(
    """aaron adam adrian ahmed aisha alan albert alejandro alex alexander alexandra alexis alfred
    ali alice alicia alison amanda amelia amir amit amy ana anders andre andrea andreas andrew
    andy angela anil anita anja ann anna anne annie anthony anton antonio anya arjun arthur
    ashley astrid audrey barbara bart beatrice ben benjamin bernard beth betty bjorn bob boris
    brad brandon brenda brendan brett brian bruce bruno bryan camille carina carl carla carlos
    carmen carol caroline caterina catherine cathy cecilia charles charlie charlotte chen chloe
    chris christian christina christine christoph christopher cindy claire clara claudia colin
    connor craig cynthia daisuke damien dan dana daniel daniela danielle danny dave david dawn
    debbie deborah deepak denis dennis derek diana diane diego dieter dimitri dirk dmitri
    dominic donald donna doris dorothy doug douglas duncan dylan ed eddie edward elaine elena
    eli elias elizabeth ella ellen elliott emil emily emma eric erica erik erika erin ernest
    esther ethan eugene eva evan eve evelyn fatima felix fernando fiona florian frances
    francesca francesco francis francois frank fred frederick fritz gabriel gareth gary gavin
    geoff george georgia gerald gerard gianni gina giulia glen gloria gordon graham greg gregory
    greta gus gustavo hana hannah hans harald harold harriet harry hassan heather heidi helen
    helena helga henrik henry herbert hiroshi howard hugh hugo ian ibrahim igor ines ingrid
    irene isaac isabel isabella ivan jackie jacob jacqueline jaime jake james jamie jan jana
    jane janet janice jarek jason javier jean jeff jeffrey jen jenna jennifer jenny jeremy
    jerome jerry jesse jessica jill jim jimmy joan joanna joe joel johan johann johanna john
    johnny jon jonas jonathan jordan jorge jose joseph josh joshua joyce juan judith judy julia
    julian julie jurgen justin kai karen karin karl kate katherine kathleen kathryn kathy katie
    kay keith kelly ken kenji kenneth kevin kim kirsten klaus kofi kristen kristin kumar kurt
    kyle lara larry lars laura lauren lawrence lea leah lee leila lena leo leon leonard leslie
    lewis li liam lila linda lisa liz lois lorenzo lori louis louise luca lucas lucia lucy luis
    luisa lukas luke lydia lynn mackenzie maggie magnus malcolm manuel mara marc marcel marco
    marcos marcus margaret maria mariana marie marina mario marion marius mark marko marta
    martha martin martina mary mateo mathias matt matthew matthias maureen maurice max maya
    megan mehmet mei melanie melissa mia michael michel michelle miguel mikael mike mikhail mila
    milan mina miriam mohamed mohammed moira monica monika morgan moritz muhammad nadia nancy
    naomi natalia natalie natasha nathan neil nell nelson niall nicholas nick nicola nicolas
    nicole nigel niko nikolai nils nina noah noor nora norman oleg olga oliver olivia omar oscar
    oskar owen pablo pam pamela pat patricia patrick paul paula pavel pedro peggy pete peter
    petra phil philip philippe phoebe pierre piotr priya rachel rahul raj rajesh ralf ralph
    ramesh ramon raphael raul ravi ray raymond rebecca rene rhys ricardo richard rick rita rob
    robert roberto rodrigo roger roland roman ron ronald ronan rosa rosie ross roy ruben rupert
    russell ruth ryan sabine sally sam samantha samir samuel sandra sandy sanjay sara sarah
    sasha scott sean sebastian sergei sergio shane shannon sharon shaun sheila shirley silvia
    simon simone sofia sonia sophia sophie stan stanley stefan stefano stella stephan stephanie
    stephen steve steven stuart sue suresh susan susanna suzanne sven svetlana sylvia takashi
    tamara tanya tara ted teresa terry tess thea theo theresa thomas tiffany tim timothy tina
    tobias todd tom tomas tommy toni tony tracy trevor tristan tyler ulrich ursula valentina
    valerie vanessa vera veronica victor victoria vijay vikram vincent vivian vladimir walter
    wanda wayne wei wendy werner wilhelm william wolfgang xavier yan yann yasmin yuki yuri yusuf
    yvonne zach zachary zoe"""
)
