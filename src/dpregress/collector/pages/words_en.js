// English.

export const english = {
  skip: "Skip to the study",
  language: "Language",
  loading: "Loading the study…",
  about: "About this study",
  times: "Open from {opens} to {closes}. Results are computed only after {minimum} reports have arrived.",

  sentHeading: "What will be sent",
  sentText:
    "Your answers stay on this device. The page turns them into a few numbers and adds random noise to each. " +
    "Only these noisy numbers are sent. You see them first, and you can keep a copy.",
  flowAnswers: "Your answers",
  flowAnswersText: "stay on this device and are not stored",
  flowNoise: "Random noise",
  flowNoiseText: "is drawn on this device before your answers are read",
  flowReport: "Your report",
  flowReportText: "{count} noisy numbers, {bytes} bytes: all that is sent",
  flowCaption: "What is inside the dashed line stays on your device. Over many reports the noise averages out.",
  guess:
    "How much does it tell? Suppose somebody must decide which of two sets of answers is yours. A coin is right in 50 " +
    "of 100 cases. With your report they are right in at most {rate} of 100.",
  details: "Details",
  detailStudy: "Hash of the study",
  detailPrice: "Privacy level",
  detailMechanism: "Noise",
  mechanismGaussian: "discrete Gaussian, scale {scale} steps of 2^-{bits}",
  mechanismUnit: "random unit vector (PrivUnit)",
  detailVersion: "Version",

  tryHeading: "Try it with made-up answers",
  tryText:
    "Move the slider to change the answers of an invented person. Each row is one number of the report. The line is " +
    "its value without noise; each dot is what one report might say. Nothing here is sent.",
  slider: "Answers of the invented person",
  sliderLow: "lowest",
  sliderHigh: "highest",
  plotLabel: "Values without noise as lines, numbers of {reports} possible reports as dots",
  plotText:
    "Without noise the first number is {value}; {reports} possible reports say {low} to {high}. " +
    "Shown: {rows} of {count} numbers, on an axis from -{edge} to {edge}.",

  questionsHeading: "Your answers",
  questionsText: "You may leave out any question.",
  range: "From {lower} to {upper}. Numbers outside count as the nearest of the two.",
  rangeUnit: "From {lower} to {upper} {unit}. Numbers outside count as the nearest of the two.",
  noAnswer: "No answer",
  notNumber: "Please enter a number, or leave the field empty.",
  make: "Add noise and make my report",
  makeText: "Nothing is sent yet. The report can be made only once, so check your answers before.",
  notOpen: "The study opens on {opens}. You can read everything now, and answer then.",
  closed: "The study closed on {closes}.",

  reviewHeading: "Your report",
  reviewMade: "This is everything that will be sent. It is kept in this browser, and your answers are cleared.",
  reviewKept: "This browser made this report earlier. It is not made again: sending other noise would reveal more.",
  reviewReceived: "The collector has this report. It counts once, however often it is sent.",
  part: "Part",
  content: "Content",
  partStudy: "Hash of the study",
  partId: "Random name of the report",
  partToken: "Invitation",
  partNumber: "Number {row}",
  none: "none",
  send: "Send this report",
  sendAgain: "Send the same report again",
  download: "Download it",
  sending: "Sending…",
  waiting: "Not yet received. The same report is sent again in {seconds} seconds.",
  received: "Received. Thank you for taking part.",
  repeated: "The collector already had this report. It counts once.",
  failed: "The report was not accepted: {why} It is kept in this browser.",

  offline: "The collector cannot be reached. Try again later.",
  busy: "The collector is busy. Try again later.",
  early: "The study is not open yet. Send the same report when it is.",
  late: "The study is closed.",
  "unknown-token": "The collector does not know this invitation. Use the link as you received it.",
  "used-token": "This invitation has been used for another report.",
  "changed-report": "A report of this name is stored with other content.",
  "wrong-study": "The collector serves another study now.",
  other: "The collector answered with the code {status}.",

  insecure: "This page works only over a secure connection (https). Nothing was read or sent.",
  noHash: "This link is incomplete: use the whole link of your invitation. It names the study that you were invited to.",
  badToken: "The invitation in this link is damaged: use the whole link as you received it.",
  noToken: "This study needs an invitation: use the whole link as you received it.",
  noStudy: "The study cannot be loaded. Try again later.",
  otherStudy: "This is not the study that you were invited to. Do not answer, and tell whoever invited you.",
  otherFormat: "This page cannot read the study: it has another version.",
  badCollectors: "This study does not name two different collectors. Do not answer, and tell whoever invited you.",
  ipv6Address: "An address of a collector of this study is an IPv6 number, which browsers cannot protect. Do not answer, and tell whoever invited you.",
  otherAddress: "This page does not come from a collector of this study. Use the link as you received it. Nothing was read or sent.",
  weakNoise: "The noise of this study does not keep what it promises. Do not answer, and tell whoever invited you.",
  noKeeping: "This browser keeps no data, perhaps because of a private window. Open the link in an ordinary window.",
  broken: "The page failed before anything was sent. Reload it, or use another browser.",

  // Two collectors. Words that end in Shares are said in place of those without.
  sentTextShares:
    "Your exact answers do not leave this device in one piece. The page turns them into a few numbers and splits these into " +
    "two shares. Each share is random numbers, which alone tell nothing. Each collector gets one share. You see both first, " +
    "and you can keep a copy.",
  flowAnswersTextShares: "leave this device in two shares only, and are kept in no other form",
  flowNoiseShares: "Random split",
  flowNoiseTextShares: "is drawn on this device before your answers are read",
  flowCaptionShares:
    "What is inside the dashed line stays on your device. Each collector adds up the shares of all people and adds random " +
    "noise to its sum, once. Only both noisy sums together give the result.",
  flowTo: "For {name}",
  flowSeed: "a random seed, {bytes} bytes in all",
  flowWords: "{count} random-looking numbers, {bytes} bytes in all",
  whoOne: "{name} ({address}) sees a random seed, which has nothing to do with your answers.",
  whoOther: "{name} ({address}) sees {count} numbers, which look random to everybody who does not have the seed.",
  whoBoth:
    "If {one} and {other} put your shares together, they can read your answers. You rely on at least one of them not to do this.",
  whoServes:
    "Whoever serves this page ({host}) could change it so that it sends your answers to one place, and could read the " +
    "shares that this browser keeps until they have arrived. The command dpregress report, which runs on your own computer, " +
    "does the same work without this page.",
  whoOnce:
    "Answer once, on the page of {one} or on that of {other}. Neither page knows of the other one: whoever answers on both " +
    "gives up twice as much privacy.",
  guessShares:
    "How much does it tell? Suppose one of the collectors, which also sees all results, must decide which of two sets of " +
    "answers is yours. A coin is right in 50 of 100 cases. They are right in at most {rate} of 100, unless they break the cipher " +
    "AES or have the other share.",
  mechanismGaussianShares: "by each collector, once: discrete Gaussian, scale {scale} steps of 2^-{bits}",
  tryTextShares:
    "Move the slider to change the answers of an invented person. The line is a number that is split; each dot is what the " +
    "second collector may get in its place. The dots may be anywhere, whatever the answers. Nothing here is sent.",
  plotLabelShares: "Numbers to be split as lines, {reports} possible shares of each as dots all over the axis",
  plotTextShares:
    "The first number is {value}; its {reports} possible shares are spread evenly over all numbers of 64 bits. " +
    "Shown: {rows} of {count} numbers. The line has a scale of its own.",
  makeShares: "Split my answers into two shares",
  makeTextShares: "Nothing is sent yet. Check your answers first: after the shares are sent, they cannot be changed.",
  reviewMadeShares:
    "This is everything that will be sent. Your answers are cleared. Nothing is kept in this browser yet: if you leave this page " +
    "before you send the shares, they are lost. Once you send them, each is kept until it has arrived. On a shared computer, " +
    "finish before you leave. Give nobody both shares: together they are your answers.",
  reviewKeptShares:
    "This browser keeps these shares until they have arrived. They count when both have. They are not made again, and what has " +
    "arrived is not sent again. On a shared computer, wait until both have arrived, or erase them before you leave. Give nobody " +
    "both shares: together they are your answers.",
  reviewReceivedShares: "Both collectors have their shares. They count once. This browser has erased them.",
  reviewRefused:
    "Your answers will not be counted, because a share was refused for good. This browser has erased both shares. It keeps " +
    "only the note that you have answered.",
  reviewRefusedHalf:
    "Your answers will not be counted: one collector has its share, but the other one refused its share for good. One share alone " +
    "tells nothing. This browser keeps nothing more than the note that you have answered.",
  reviewErased:
    "This browser has erased both shares, and your answers will not be counted. It keeps only the note that you have answered. " +
    "Copies that you downloaded are yours to delete.",
  reviewErasedHalf:
    "This browser has erased the share that had not arrived, and your answers will not be counted. One collector has its share, " +
    "which alone tells nothing. This browser keeps only the note that you have answered. Copies that you downloaded are yours to delete.",
  partFor: "Share for {name}",
  partSeed: "Seed",
  partNone: "Share",
  partErased: "has arrived and was erased here",
  partGone: "was erased here",
  erase: "Erase what this browser keeps",
  notKept: "This browser could not keep the shares, so nothing was sent. Try again, or use another browser.",
  notErased: "This browser could not erase the shares. Delete the data of this page in the settings of the browser.",
  sendShares: "Send each share to its collector",
  downloadShare: "Download the share for {name}",
  shareSending: "{name}: sending…",
  shareWaiting: "{name}: not yet received. The same share is sent again in {seconds} seconds.",
  shareReceived: "{name}: received.",
  shareFailed: "{name}: not accepted. {why}",
  shareRefused: "{name}: refused for good. {why}",
};
