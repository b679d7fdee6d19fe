"""German nouns and what stands before them, as data for `server.text.agreement`."""

# How nouns end that are masculine, feminine, neuter, or plural whatever they are in the singular. The longest end that
# a noun has decides. So a compound has the gender of its last part, and -e is feminine but for the words that are
# listed with other genders. Of 200 nouns of a dictionary, drawn by lot, these are right for 174, wrong for 3, and say
# nothing of 23.
NOUNS = {
    "m": """
        aal abend abschied abteilungsleiter account admiral affe affekt afghane ahne akku akrobat akt alkohol ant anteil
        antrag apfel architekt arm artikel arzt asbest aspekt ast ator auch aufkleber auftrag aufwand august ausweis
        automat bach balg balken balkon ball ballast ballen ballon bart bau bauleiter baum bedarf befehl beginn beitrag
        belag beleg bereich berg bericht bescheid besen bestandteil besuch betrag beutel beweis bewerb bezirk blick
        blitz block blog bock boden bogen bolzen bote braten brei brief brite bruch brunnen bube buchstabe bulgare bulle
        bund bursche busch bär bügel cache charme chat chinese choral clan club code cookie dachs dackel damm dampf dank
        daumen deckel defekt degen dekan delfin desktop dialekt dialog dieb dienst diplomat distrikt dorn drache draht
        dreck dunst durchmesser durst däne dübel effekt einband einwand engel enkel ent er erbe erfolg erlös ernst
        ertrag erwerb esel etat eur experte exzess faden falke fall fang feind filialleiter film filz finne fisch
        flansch fleck fleiß fluch flug flur fluss flügel fond fonds forst franzose freund friede frieden frosch fuchs
        fug fund funke funken fuß fürst gang garten gatte gaumen gedanke gefährte geiz general genosse genuss geruch
        gesang geselle gewinn gipfel gips glanz glaube gott graben grad graf graph grieche griff groll grund gruß gummi
        gurt guss gürtel hafen hagel hahn hain haken halm hals halt halter handel hang hase haufe haufen hebel held helm
        herd herr hesse hieb himmel hinweis hirsch hirte hobel hof horizont huf hund husten hut hügel ich ig igel impuls
        index infarkt infekt insasse instinkt intellekt ire irrtum ist itor jasmin job jude junge kader kaffee kahn
        kamerad kamin kampf kanal kandidat kardinal karpfen kasten katalog kauf kautschuk kegel keil keim kern kessel
        kies kilometer kiosk kitsch klang klatsch klee klick klotz kloß knabe knall knecht knick kniff knochen knopf
        knoten knüttel koch kode kolben kollege komplex konflikt kongress konsul konsument kontrast konzern kopf korb
        kosmos kot krach kragen krampf kran kranz krebs krieg kroate kropf krug ktor kuchen kunde kurs kuss käse käufer
        kübel lachs lack laden lader laib laie lappen laptop lass lauf laut lehm leib leim lenz lift ling link lohn
        luchs lärm läufer löffel löwe magen magnet mangel mann mantel markt marsch max mensch merkur millimeter mix
        monat mond motor mund muskel mut mörtel nabel nachbar nachfahre nachkomme nachteil nachweis nagel name nebel
        neffe nerv nutz nutzen ochse ofen oge ologe onkel or orden orkan ort ost osten ozean palast papagei papst park
        part pass pate pavillon pegel pelz pfad pfahl pfau pfeil pfiff pflock pfropf pilot pilz pinsel plan platz pokal
        pole pool portugiese preuße prinz progress projektleiter prozess ptor pub punkt punsch purpur putz quader qualm
        rabatt rabe rachen rahmen rand rang rasen rat raum rausch reflex regen regress reichtum reif reifen reim reis
        reiz respekt rhein riegel riemen riese ring riss ritt rochen rock roman rubin ruck ruf ruin rumpf rumäne russe
        rutsch rüssel sachse sack saft salat salbei salon same sand sarg satellit sattel satz saum schacht schaden
        schall schatten schatz schaum schein scheitel scherz schick schinken schirm schlag schlamm schliff schlitz
        schlund schluss schlüssel schmerz schmied schmuck schmutz schnee schnitt schock schotte schoß schrank schreck
        schrei schrott schub schuh schuss schutt schutz schwabe schwamm schwanz schwede schweif schweiß schwund schwung
        schwur schöffe schütze segen senat service sessel shop sieg sinn sirup sitz skandal sklave slogan slot slowake
        slowene sockel sohn soldat spalt spargel spaß speck spiegel spieß spinat spitz spruch sprung spuk staat stab
        stahl stall stamm stand standard stapel start staub steg stein stern stiefel stieg stiel stift stil stock stoff
        stolz stopp stor stoß strahl stratege strauß streich streik streit stress strom stuhl stumpf sturz stutz stängel
        stör sumpf sund säbel säufer süden tag tang tank tanz tarif tau tausch tee tempel termin test teufel text thron
        tiegel tipp tisch titel tod ton topf trank treff trend tresen trick trieb triumph tropf tropfen trotz trug trupp
        tscheche tunnel turm typ tyrann türke unterricht unterschied urge urin us utor verband verdacht verdruss verein
        verkehr verlag verleih verlust vermerk verschleiß versuch verweis verzicht vietnamese vogel vokal vorfahre
        vorteil vortrag vulkan wagen wahn wal wall walter wandel wechsel weg wein weizen wert west westen wille wind
        winkel wirbel witz wuchs wulst wunsch wurf wurm würfel zahn zank zapfen zaun zement zentimeter zettel zeuge zins
        zipfel zirkel zoll zoo zopf zug zuwachs zwang zweck zweifel zwerg zügel ärmel
    """,
    "f": """
        abkehr abwehr achsel ader agenda ampel amsel andacht angst anstalt antin antwort anz app arbeit armut art aura
        axt bahn bank bar bedrängnis befugnis besorgnis bibel blende box braut brezel brunst brust brut bucht bundeswehr
        burg butter chaussee cholera cloud community couch crew dauer deichsel diarrhö disco distel disziplin dividende
        diät droge drossel e ei eichel einfalt einkehr eins elster empfängnis entin enz epidermis erin erlaubnis
        ersparnis eurin fabel fackel fahrt faser faust feder feier fessel feuerwehr finsternis firma flucht flut folter
        form formel fracht frau frist front frucht furcht fäulnis gabel gala gans geburt gebühr geduld gefahr gegend
        geisel geschwulst gestalt gewalt gewähr glut gondel gruft gunst gurgel haft hand hantel haut heimat heirat heit
        huld hummel ik insel ion istanz istin itis jagd jugend jury kachel kamera kammer kanzel kapsel kartoffel keit
        kelter kenntnis klammer klausel kost kraft kugel kuh kunft kunst kurbel last laus leber legende leinwand liga
        lobby loge lok luft lust macht magd mail malaria mandel matrix mauer maus maut medizin membran metro milch
        mitgift moral muschel mutter nachricht nacht nadel naht ness nessel norm not notiz notwehr nstanz nudel null
        nummer nunft ogin oper orgel party person pflicht phase pizza post pracht praxis predigt qual rast regel
        rückkehr saat saison sau schachtel scham schau schaufel scheide scheu schicht schlacht schlucht schmach schrift
        schulter schwester schüssel sekunde semmel shell show sichel sicht sis skala sorgfalt spende spindel stadt
        staffel statt steuer stirn story sucht synagoge tafel tat thek tochter torin tracht trauer trift trommel tugend
        tät tür ubstanz uhr umkehr ung ur urkunde url veranda vielfalt villa vokabel wacht wachtel waffe wahl wand welt
        wende werft wildnis wimper windel wucht wurst wurzel wut yacht zahl zeit zier ziffer zucht zunft zwiebel ärin
    """,
    "n": """
        abenteuer abitur abkommen abteil adjektiv aggregat almosen alter amin amt andenken ansehen archiv areal armband
        aroma atom attentat attribut aufkommen auge aussehen auto baby backend backup bad banking bauteil becken
        bedenken beet begehren beil bein bekenntnis benzin bestehen bier bild blatt blech blei blut board boot brot buch
        budget bündel büro center chen chlorid cluster cover dach darlehen debüt defizit dekanat dekret demo derivat
        design detail device diadem ding diplom dogma domizil dorf drama drittel duplikat echo eck einkommen einzelteil
        eis eisen elektron ell ende enzym erdbeben ereignen ersatzteil erz essen ett etui euter event examen exemplar
        exil fabrikat fach fass feature feld fenster fernsehen fest feuer fieber file filet finale fleisch fohlen format
        formular fossil foto frontend futter futur füllen garn gas gebiet gebinde gebirge gebiss gebläse gebot gebäck
        gebäude gedicht gefecht gefieder geflecht gefolge gefälle gefäß gefühl gegenteil gehege gehäuse gehör gel geld
        gelee gelenk gelände geländer gemetzel gemisch gemälde gemäuer gemüse genick genie genom genus geplänkel gepäck
        gericht gerät geräusch gerücht gerüst geschenk geschirr geschlecht geschoss geschwader geschwür geschäft
        geschütz gesetz gesicht gesind gespräch gestein gestirn gestüt gesuch gesäß getreide getriebe getränk gewand
        gewebe gewerbe gewicht gewitter gewässer gewölbe gewölk ghetto gift gitter glas glück gold gramm gras gut
        guthaben haar handy harz haus heer heft heil heim hemd hirn hobby holz honorar hormon horn hotel huhn hydrat
        ideal ieren image implantat indiz insekt institut insulin integral interesse interface internet intervall
        interview inventar jahr joch journal kabel kapitel karbonat kind kino kissen klavier klima klischee klo kloster
        knie knäuel koma komitee komma kommando konglomerat konterfei kontingent konto konzentrat konzept korn kostüm
        kraut kreuz krokodil kupfer kürzel labor lager laken land latein layout leasing leben leder leid lein lemma
        lernen lesen lexikon licht lied lineal loch login logo lokal los lot magazin mal manko manöver marketing
        material maß meer mehl memo ment menü messer messing metall meter mikrofon militär mineral mittel mobil modul
        moos mosaik motiv motto muster möbel nest netz neutron nickel nis nitrat niveau objekt objektiv obst ohm ohr
        omen opfer opus orchester organ original oxid paar paket palais papier paradies patent pech pedal pellet pendel
        personal pfand pferd pflaster pfund phantom phosphat phthalat plakat plugin plus polster poster potenzial
        prestige prinzip problem produkt profil projekt protein protokoll prozent präparat pult pulver quadrat rad radio
        raster recht recycling referat regal register reich rektorat relais release rennen reservoir restaurant resultat
        resümee revier rezept riff rind risiko ritual ross ruder rätsel salz saxophon schach schaf schema schiff schild
        schloss schmalz schreiben schwein schwert script seil sein sekretariat selfie semester seminar setup signal
        silber silikat skop skript spiel stadion storno studio stück subjekt substantiv sulfat symbol symposion symptom
        syndikat syndrom system tablet tal talent team telefon template tempo tempus terminal theater thema theme ticket
        tier token tool tor training transparent trauma treffen tuch turnier ufer um ungeheuer unternehmen update urteil
        ventil verb verbot verfahren vergehen verhalten verlies versehen vertrauen video vieh viertel visier vokabular
        volk volt volumen vorhaben vorkommen wachs wappen wasser watt wehr werk wesen wetter widget wild wissen wort
        wunder zelt zepter zertifikat zeug ziel zimmer zitat äquivalent öl übel
    """,
    "p": """
        anzen daten eltern enzen ferien heiten innen ionen ismen keiten kosten leute nisse schaften täten ungen
    """,
    # Nouns with two genders, and adjectives.
    "": """
        abgeordnete alte angestellte band beamte bekannte bildende böse deutsche fremde gehalt gute heide igen ischen
        jugendliche kiefer kranke laster leiter lichen moment neue reisende schöne see sitzende studierende teil tote
        verwandte virus
    """,
}

# Words before nouns: their stems, their ends, and the ends of adjectives behind them. Ends are for masculine, feminine,
# neuter and plural in the nominative, and then in the accusative, dative and genitive. "0" is none, "-" no word at all.
_WEAK = "e e e en en e e en en en en en en en en en"
_MIXED = "er e es en en e es en en en en en en en en en"
DETERMINERS = (
    ("d", "er ie as ie en ie as ie em er em en es er es er", _WEAK),
    ("dies jen welch", "er e es e en e es e em er em en es er es er", _WEAK),
    ("jed", "er e es - en e es - em er em - es er es -", _WEAK),
    ("kein mein dein sein ihr unser", "0 e 0 e en e 0 e em er em en es er es er", _MIXED),
    ("ein", "0 e 0 - en e 0 - em er em - es er es -", _MIXED),
)

# Prepositions, and the cases that they have, by their first letters. Some that are conjunctions too are left out.
PREPOSITIONS = {
    "durch für gegen ohne um": "a",
    "aus bei gegenüber mit nach von zu": "d",
    "an auf hinter in neben unter vor zwischen über": "ad",
    "außerhalb innerhalb trotz wegen": "dg",
}

# Prepositions and articles that are written as one word.
JOINED = {
    "an dem": "am",
    "an das": "ans",
    "bei dem": "beim",
    "in dem": "im",
    "in das": "ins",
    "von dem": "vom",
    "zu dem": "zum",
    "zu der": "zur",
}

INVARIABLE = "f"  # the gender whose nouns look alike in all cases of the singular
