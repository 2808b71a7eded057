// German.

export const german = {
  skip: "Zur Studie",
  language: "Sprache",
  loading: "Die Studie wird geladen …",
  about: "Über diese Studie",
  times: "Geöffnet vom {opens} bis zum {closes}. Ergebnisse werden erst ab {minimum} Berichten berechnet.",

  sentHeading: "Was gesendet wird",
  sentText:
    "Ihre Antworten bleiben auf diesem Gerät. Die Seite macht daraus einige Zahlen und addiert zu jeder zufälliges " +
    "Rauschen. Nur diese verrauschten Zahlen werden gesendet. Sie sehen sie vorher und können eine Kopie behalten.",
  flowAnswers: "Ihre Antworten",
  flowAnswersText: "bleiben auf diesem Gerät und werden nicht gespeichert",
  flowNoise: "Zufälliges Rauschen",
  flowNoiseText: "wird auf diesem Gerät gezogen, bevor Ihre Antworten gelesen werden",
  flowReport: "Ihr Bericht",
  flowReportText: "{count} verrauschte Zahlen, {bytes} Bytes: mehr wird nicht gesendet",
  flowCaption:
    "Was innerhalb der gestrichelten Linie steht, bleibt auf Ihrem Gerät. Über viele Berichte mittelt sich das Rauschen heraus.",
  guess:
    "Wie viel verrät das? Angenommen, jemand muss entscheiden, welche von zwei Antwortreihen Ihre ist. Eine Münze hat in " +
    "50 von 100 Fällen recht. Mit Ihrem Bericht sind es höchstens {rate} von 100.",
  details: "Einzelheiten",
  detailStudy: "Hash der Studie",
  detailPrice: "Datenschutzniveau",
  detailMechanism: "Rauschen",
  mechanismGaussian: "diskrete Gauß-Verteilung, Skala {scale} Schritte von 2^-{bits}",
  mechanismUnit: "zufälliger Einheitsvektor (PrivUnit)",
  detailVersion: "Version",

  tryHeading: "Mit erfundenen Antworten ausprobieren",
  tryText:
    "Der Regler ändert die Antworten einer erfundenen Person. Jede Zeile ist eine Zahl des Berichts. Der Strich ist ihr " +
    "Wert ohne Rauschen; jeder Punkt ist, was ein Bericht melden könnte. Hier wird nichts gesendet.",
  slider: "Antworten der erfundenen Person",
  sliderLow: "niedrigste",
  sliderHigh: "höchste",
  plotLabel: "Werte ohne Rauschen als Striche, Zahlen von {reports} möglichen Berichten als Punkte",
  plotText:
    "Ohne Rauschen ist die erste Zahl {value}; {reports} mögliche Berichte melden {low} bis {high}. " +
    "Gezeigt: {rows} von {count} Zahlen, auf einer Achse von -{edge} bis {edge}.",

  questionsHeading: "Ihre Antworten",
  questionsText: "Sie dürfen jede Frage auslassen.",
  range: "Von {lower} bis {upper}. Zahlen außerhalb zählen als die nächstgelegene der beiden.",
  rangeUnit: "Von {lower} bis {upper} {unit}. Zahlen außerhalb zählen als die nächstgelegene der beiden.",
  noAnswer: "Keine Angabe",
  notNumber: "Bitte geben Sie eine Zahl ein, oder lassen Sie das Feld leer.",
  make: "Rauschen addieren und Bericht erstellen",
  makeText: "Noch wird nichts gesendet. Der Bericht wird nur einmal erstellt: Prüfen Sie vorher Ihre Antworten.",
  notOpen: "Die Studie beginnt am {opens}. Sie können jetzt alles lesen und dann antworten.",
  closed: "Die Studie endete am {closes}.",

  reviewHeading: "Ihr Bericht",
  reviewMade: "Das ist alles, was gesendet wird. Der Bericht bleibt in diesem Browser; Ihre Antworten sind gelöscht.",
  reviewKept:
    "Dieser Browser hat den Bericht früher erstellt. Er wird nicht neu erstellt: Anderes Rauschen würde mehr verraten.",
  reviewReceived: "Dieser Bericht ist angekommen. Er zählt einmal, gleich wie oft er gesendet wird.",
  part: "Teil",
  content: "Inhalt",
  partStudy: "Hash der Studie",
  partId: "Zufälliger Name des Berichts",
  partToken: "Einladung",
  partNumber: "Zahl {row}",
  none: "keine",
  send: "Diesen Bericht senden",
  sendAgain: "Denselben Bericht noch einmal senden",
  download: "Herunterladen",
  sending: "Wird gesendet …",
  waiting: "Noch nicht angekommen. Derselbe Bericht wird in {seconds} Sekunden noch einmal gesendet.",
  received: "Angekommen. Danke für Ihre Teilnahme.",
  repeated: "Dieser Bericht war schon angekommen. Er zählt einmal.",
  failed: "Der Bericht wurde nicht angenommen: {why} Er bleibt in diesem Browser.",

  offline: "Der Server ist nicht erreichbar. Versuchen Sie es später noch einmal.",
  busy: "Der Server ist ausgelastet. Versuchen Sie es später noch einmal.",
  early: "Die Studie hat noch nicht begonnen. Senden Sie denselben Bericht danach.",
  late: "Die Studie ist beendet.",
  "unknown-token": "Diese Einladung ist nicht bekannt. Benutzen Sie den Link so, wie Sie ihn bekommen haben.",
  "used-token": "Diese Einladung wurde schon für einen anderen Bericht benutzt.",
  "changed-report": "Unter diesem Namen ist ein anderer Bericht gespeichert.",
  "wrong-study": "Hier läuft inzwischen eine andere Studie.",
  other: "Der Server hat mit dem Code {status} geantwortet.",

  insecure: "Diese Seite arbeitet nur über eine sichere Verbindung (https). Nichts wurde gelesen oder gesendet.",
  noHash: "Dieser Link ist unvollständig: Benutzen Sie den ganzen Link Ihrer Einladung. Er nennt die Studie, zu der Sie eingeladen wurden.",
  badToken: "Die Einladung in diesem Link ist beschädigt: Benutzen Sie den ganzen Link, wie Sie ihn bekommen haben.",
  noToken: "Diese Studie verlangt eine Einladung: Benutzen Sie den ganzen Link, wie Sie ihn bekommen haben.",
  noStudy: "Die Studie kann nicht geladen werden. Versuchen Sie es später noch einmal.",
  otherStudy: "Das ist nicht die Studie, zu der Sie eingeladen wurden. Antworten Sie nicht, und sagen Sie es der einladenden Stelle.",
  otherFormat: "Diese Seite kann die Studie nicht lesen: Sie hat eine andere Version.",
  badCollectors: "Diese Studie nennt keine zwei verschiedenen Sammelstellen. Antworten Sie nicht, und sagen Sie es der einladenden Stelle.",
  ipv6Address: "Eine Adresse einer Sammelstelle dieser Studie ist eine IPv6-Nummer, die Browser nicht schützen können. Antworten Sie nicht, und sagen Sie es der einladenden Stelle.",
  otherAddress:
    "Diese Seite kommt von keiner Sammelstelle dieser Studie. Benutzen Sie den Link so, wie Sie ihn bekommen haben. Es wurde nichts gelesen oder gesendet.",
  weakNoise: "Das Rauschen dieser Studie hält nicht, was sie verspricht. Antworten Sie nicht, und sagen Sie es der einladenden Stelle.",
  noKeeping: "Dieser Browser speichert nichts, vielleicht wegen eines privaten Fensters. Öffnen Sie den Link in einem gewöhnlichen Fenster.",
  broken: "Die Seite ist gescheitert, bevor etwas gesendet wurde. Laden Sie sie neu, oder nehmen Sie einen anderen Browser.",

  // Zwei Sammelstellen. Wörter, die auf Shares enden, stehen für die ohne diese Endung.
  sentTextShares:
    "Ihre genauen Antworten verlassen dieses Gerät nicht in einem Stück. Die Seite macht daraus einige Zahlen und zerlegt sie " +
    "in zwei Anteile. Jeder Anteil besteht aus zufälligen Zahlen, die allein nichts verraten. Jede Sammelstelle bekommt einen " +
    "Anteil. Sie sehen beide vorher und können eine Kopie behalten.",
  flowAnswersTextShares: "verlassen dieses Gerät nur in zwei Anteilen und werden in keiner anderen Form aufbewahrt",
  flowNoiseShares: "Zufällige Zerlegung",
  flowNoiseTextShares: "wird auf diesem Gerät gezogen, bevor Ihre Antworten gelesen werden",
  flowCaptionShares:
    "Was innerhalb der gestrichelten Linie steht, bleibt auf Ihrem Gerät. Jede Sammelstelle zählt die Anteile aller Menschen " +
    "zusammen und addiert einmal zufälliges Rauschen zur Summe. Nur beide Summen zusammen ergeben das Ergebnis.",
  flowTo: "Für {name}",
  flowSeed: "ein zufälliger Startwert, zusammen {bytes} Bytes",
  flowWords: "{count} zufällig aussehende Zahlen, zusammen {bytes} Bytes",
  whoOne: "{name} ({address}) sieht einen zufälligen Startwert, der nichts mit Ihren Antworten zu tun hat.",
  whoOther: "{name} ({address}) sieht {count} Zahlen, die für alle ohne den Startwert zufällig aussehen.",
  whoBoth:
    "Legen {one} und {other} Ihre Anteile zusammen, können sie Ihre Antworten lesen. Sie verlassen sich darauf, dass mindestens " +
    "eine der beiden das nicht tut.",
  whoServes:
    "Wer diese Seite ausliefert ({host}), könnte sie so ändern, dass sie Ihre Antworten an eine Stelle sendet, und könnte die " +
    "Anteile lesen, die dieser Browser aufbewahrt, bis sie angekommen sind. Der Befehl dpregress report, der auf Ihrem eigenen " +
    "Rechner läuft, leistet dasselbe ohne diese Seite.",
  whoOnce:
    "Antworten Sie nur einmal, auf der Seite von {one} oder auf der von {other}. Keine der Seiten weiß von der anderen: Wer auf " +
    "beiden antwortet, gibt doppelt so viel preis.",
  guessShares:
    "Wie viel verrät das? Angenommen, eine der Sammelstellen, die auch alle Ergebnisse sieht, muss entscheiden, welche von zwei " +
    "Antwortreihen Ihre ist. Eine Münze hat in 50 von 100 Fällen recht. Hier sind es höchstens {rate} von 100, solange niemand " +
    "die Verschlüsselung AES bricht oder den anderen Anteil hat.",
  mechanismGaussianShares: "von jeder Sammelstelle, einmal: diskrete Gauß-Verteilung, Skala {scale} Schritte von 2^-{bits}",
  tryTextShares:
    "Der Regler ändert die Antworten einer erfundenen Person. Der Strich ist eine Zahl, die zerlegt wird; jeder Punkt ist, was " +
    "die zweite Sammelstelle an ihrer Stelle bekommen könnte. Die Punkte liegen irgendwo, gleich welche Antworten es sind. Hier " +
    "wird nichts gesendet.",
  plotLabelShares: "Zahlen vor der Zerlegung als Striche, je {reports} mögliche Anteile als Punkte über die ganze Achse",
  plotTextShares:
    "Die erste Zahl ist {value}; ihre {reports} möglichen Anteile verteilen sich gleichmäßig über alle Zahlen von 64 Bits. " +
    "Gezeigt: {rows} von {count} Zahlen. Der Strich hat einen eigenen Maßstab.",
  makeShares: "Meine Antworten in zwei Anteile zerlegen",
  makeTextShares: "Noch wird nichts gesendet. Prüfen Sie Ihre Antworten vorher: Nach dem Senden lassen sie sich nicht mehr ändern.",
  reviewMadeShares:
    "Das ist alles, was gesendet wird. Ihre Antworten sind gelöscht. Dieser Browser bewahrt noch nichts auf: Wenn Sie die Seite " +
    "vor dem Senden verlassen, gehen die Anteile verloren. Nach dem Senden bleibt jeder hier, bis er angekommen ist. Verlassen " +
    "Sie einen gemeinsam genutzten Rechner erst danach. Geben Sie niemandem beide Anteile: Zusammen sind sie Ihre Antworten.",
  reviewKeptShares:
    "Dieser Browser bewahrt diese Anteile auf, bis sie angekommen sind. Erst beide zusammen zählen. Sie werden nicht neu gemacht, " +
    "und was angekommen ist, wird nicht noch einmal gesendet. Warten Sie auf einem gemeinsam genutzten Rechner, bis beide " +
    "angekommen sind, oder löschen Sie sie, bevor Sie gehen. Geben Sie niemandem beide Anteile: Zusammen sind sie Ihre Antworten.",
  reviewReceivedShares: "Beide Sammelstellen haben ihre Anteile. Sie zählen einmal. Dieser Browser hat sie gelöscht.",
  reviewRefused:
    "Ihre Antworten werden nicht gezählt, weil ein Anteil endgültig abgelehnt wurde. Dieser Browser hat beide Anteile gelöscht. " +
    "Er merkt sich nur, dass Sie geantwortet haben.",
  reviewRefusedHalf:
    "Ihre Antworten werden nicht gezählt: Eine Sammelstelle hat ihren Anteil, aber die andere hat ihren endgültig abgelehnt. Ein " +
    "Anteil allein verrät nichts. Dieser Browser merkt sich nur noch, dass Sie geantwortet haben.",
  reviewErased:
    "Dieser Browser hat beide Anteile gelöscht, und Ihre Antworten werden nicht gezählt. Er merkt sich nur, dass Sie geantwortet " +
    "haben. Heruntergeladene Kopien müssen Sie selbst löschen.",
  reviewErasedHalf:
    "Dieser Browser hat den Anteil gelöscht, der noch nicht angekommen war, und Ihre Antworten werden nicht gezählt. Eine " +
    "Sammelstelle hat ihren Anteil, der allein nichts verrät. Dieser Browser merkt sich nur, dass Sie geantwortet haben. " +
    "Heruntergeladene Kopien müssen Sie selbst löschen.",
  partFor: "Anteil für {name}",
  partSeed: "Startwert",
  partNone: "Anteil",
  partErased: "ist angekommen und wurde hier gelöscht",
  partGone: "wurde hier gelöscht",
  erase: "Löschen, was dieser Browser aufbewahrt",
  notKept: "Dieser Browser konnte die Anteile nicht aufbewahren, deshalb wurde nichts gesendet. Versuchen Sie es noch einmal, oder nehmen Sie einen anderen Browser.",
  notErased: "Dieser Browser konnte die Anteile nicht löschen. Löschen Sie die Daten dieser Seite in den Einstellungen des Browsers.",
  sendShares: "Jeden Anteil an seine Sammelstelle senden",
  downloadShare: "Anteil für {name} herunterladen",
  shareSending: "{name}: wird gesendet …",
  shareWaiting: "{name}: noch nicht angekommen. Derselbe Anteil wird in {seconds} Sekunden noch einmal gesendet.",
  shareReceived: "{name}: angekommen.",
  shareFailed: "{name}: nicht angenommen. {why}",
  shareRefused: "{name}: endgültig abgelehnt. {why}",
};
