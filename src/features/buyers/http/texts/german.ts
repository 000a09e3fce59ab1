import { dateFormat, timeFormat } from './dates.ts';
import type { Texts } from './english.ts';

export const german: Texts = {
  language: 'de',
  languageName: 'Deutsch',
  dateFormat: dateFormat('de-DE'),
  timeFormat: timeFormat('de-DE'),
  title: 'Ihre Lizenz',
  support: 'Hilfe',

  intro:
    'Sehen Sie, was Ihre Lizenz umfasst und welche Geräte sie nutzen. Geben Sie einen Platz für ein neues Gerät frei.',
  licenseKey: 'Lizenzschlüssel',
  licenseKeyHint: 'Er steht in der E-Mail zu Ihrem Kauf.',
  email: 'E-Mail-Adresse des Kaufs',
  open: 'Lizenz anzeigen',
  lostKey: 'Lizenzschlüssel verloren?',
  lostKeyText:
    'Geben Sie die E-Mail-Adresse Ihres Kaufs ein. Sie erhalten eine E-Mail mit Ihren Lizenzschlüsseln.',
  sendKeys: 'Lizenzschlüssel zusenden',
  mailAsked: 'Sehen Sie in Ihr Postfach',
  mailAskedText:
    'Wurde mit dieser Adresse eine Lizenz gekauft, kommt in wenigen Minuten eine E-Mail mit dem Lizenzschlüssel an. Sehen Sie auch im Spam-Ordner nach.',
  toStart: 'Zurück zum Anfang',

  status: 'Status',
  statuses: { active: 'Gültig', grace: 'Abgelaufen', expired: 'Abgelaufen', disabled: 'Gesperrt' },
  usableUntil: (at) => `Sie kann noch bis ${at} genutzt werden.`,
  replaced:
    'Diese Lizenz hat einen neuen Schlüssel. Fragen Sie nach ihm, falls Sie ihn nicht erhalten haben.',
  validUntil: 'Gültig bis',
  noEnd: 'Unbefristet',
  uses: 'Nutzungen',
  usesTaken: (uses, limit) => `${uses} von ${limit}`,
  includes: 'Umfasst',
  seats: 'Plätze',
  seatsTaken: (taken, limit) =>
    limit === null ? `${taken} belegt, ohne Begrenzung` : `${taken} von ${limit} belegt`,
  devices: 'Geräte',
  noDevice: 'Kein Gerät nutzt diese Lizenz.',
  moreDevices: (shown) => `Es werden nur ${shown} Geräte angezeigt.`,
  unnamed: 'Gerät ohne Namen',
  lastContact: (at) => `Letzter Kontakt: ${at}`,
  freeSeat: 'Platz freigeben',
  movesLeft: (left) => `Plätze können dreimal in 30 Tagen freigegeben werden: noch ${left} übrig.`,

  isSeatFreed: (device) => `Platz von ${device} freigeben?`,
  loses: (device, at) =>
    `${device} verliert die Lizenz beim nächsten Kontakt. Ohne Netz kann das Gerät die Lizenz bis ${at} nutzen.`,
  hasLost: (device) => `${device} hat keine gültige Lizenz mehr.`,
  usable: 'Ein anderes Gerät kann den Platz sofort nutzen.',
  countsAsMove: (left) =>
    `Plätze können dreimal in 30 Tagen freigegeben werden. Dies zählt dazu, danach noch ${left} übrig.`,
  countsNot: 'Dies zählt nicht zu den drei Malen in 30 Tagen.',
  keepSeat: 'Platz behalten',
  seatStays: (device) => `Der Platz von ${device} kann jetzt nicht freigegeben werden`,
  inUse: (from) =>
    `Das Gerät ist in Gebrauch. Geben Sie den Platz auf dem Gerät selbst zurück. Ist das Gerät verloren oder defekt, kommen Sie nach dem ${from} wieder.`,
  noMoveLeft: (from) =>
    `Plätze dieser Lizenz wurden dreimal in 30 Tagen freigegeben. Bleibt das Gerät ausgeschaltet, kann sein Platz nach dem ${from} freigegeben werden.`,
  seatFreed: (device) => `Der Platz von ${device} ist frei.`,
  seatWasFree: 'Dieser Platz ist schon frei.',
  back: 'Zurück zur Lizenz',

  offline: 'Ein Rechner ohne Netz',
  offlineText:
    'Das Programm auf dem Rechner schreibt eine Anfrage: eine Datei, einen Text oder einen QR-Code. Wählen Sie die Datei hier aus oder fügen Sie den Text ein. Sie erhalten die Antwort für den Rechner.',
  requestFile: 'Datei mit der Anfrage',
  requestText: 'Oder der Text der Anfrage',
  downloadAnswer: 'Antwort als Datei herunterladen',
  showCode: 'Antwort als QR-Code anzeigen',
  answer: 'Die Antwort für Ihren Rechner',
  leasedUntil: (at) => `Damit ist die Lizenz auf dem Rechner bis ${at} gültig.`,
  noticed:
    'Die Antwort enthält keine Lizenz: Die Lizenz ist gesperrt oder abgelaufen, oder der Rechner hat seinen Platz zurückgegeben.',
  sequenced:
    'Der Rechner und der Verkäufer kennen unterschiedliche frühere Anfragen. Installieren Sie diese Antwort, erstellen Sie auf dem Rechner eine neue Anfrage und senden Sie sie hier.',
  scanCode: 'Scannen Sie diesen Code mit dem Rechner, oder bringen Sie die Datei auf den Rechner.',
  qrCode: 'QR-Code der Antwort',
  noCode: 'Die Antwort ist zu lang für einen QR-Code. Bringen Sie die Datei auf den Rechner.',
  answerText: 'Die Antwort als Text',
  refusals: {
    lease_request_invalid:
      'Dies ist keine Anfrage eines Rechners. Wählen Sie die Datei der Anfrage, oder fügen Sie den ganzen Text ein.',
    license_not_found: 'Die Anfrage ist für eine andere Lizenz.',
    no_seat_left:
      'Kein Platz ist frei. Geben Sie den Platz eines Geräts frei und senden Sie die Anfrage noch einmal.',
    no_move_left:
      'Plätze dieser Lizenz wurden dreimal in 30 Tagen freigegeben. Senden Sie die Anfrage noch einmal, wenn ein Platz frei ist.',
    activation_blocked: 'Der Verkäufer hat diesen Rechner für die Lizenz gesperrt.',
  },

  notFound: 'Zu diesen Angaben passt keine Lizenz. Vergleichen Sie sie mit der E-Mail zu Ihrem Kauf.',
  expired: 'Diese Seite war zu lange geöffnet. Geben Sie Ihren Lizenzschlüssel noch einmal ein.',
  tooMany: (minutes) =>
    `Es gab zu viele Anfragen. Warten Sie ${minutes === 1 ? 'eine Minute' : `${minutes} Minuten`} und versuchen Sie es noch einmal.`,
  tooLarge: 'Die Datei ist zu groß für die Anfrage eines Rechners.',
  unreadable: 'Diese Anfrage kann nicht gelesen werden.',
  unavailable: 'Dies geht gerade nicht. Versuchen Sie es in einigen Minuten noch einmal.',
};
