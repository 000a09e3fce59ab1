import { dateFormat, timeFormat } from './dates.ts';

/** The texts of the page. A text that is missing in another language does not compile. */
export const english = {
  language: 'en',
  /** The name of the language, for the link to it. */
  languageName: 'English',
  dateFormat: dateFormat('en-GB'),
  timeFormat: timeFormat('en-GB'),
  title: 'Your license',
  support: 'Help',

  intro: 'See what your license includes and which devices use it. Free a seat for a new device.',
  licenseKey: 'License key',
  licenseKeyHint: 'It is in the mail about your purchase.',
  email: 'E-mail address of the purchase',
  open: 'Show my license',
  lostKey: 'Lost your license key?',
  lostKeyText: 'Type the e-mail address of your purchase. You get a mail with your license keys.',
  sendKeys: 'Send me my license keys',
  mailAsked: 'Look into your mailbox',
  mailAskedText:
    'If a license was bought with this address, a mail with the license key arrives within a few minutes. Look into the spam folder as well.',
  toStart: 'Back to the start',

  status: 'Status',
  statuses: { active: 'Valid', grace: 'Ended', expired: 'Ended', disabled: 'Disabled' },
  usableUntil: (at: string) => `It can still be used until ${at}.`,
  replaced: 'This license has a new key. Ask for the new key if you have not got it.',
  validUntil: 'Valid until',
  noEnd: 'Without end',
  uses: 'Uses',
  usesTaken: (uses: number, limit: number) => `${uses} of ${limit}`,
  includes: 'Includes',
  seats: 'Seats',
  seatsTaken: (taken: number, limit: number | null) =>
    limit === null ? `${taken} taken, without a limit` : `${taken} of ${limit} taken`,
  devices: 'Devices',
  noDevice: 'No device uses this license.',
  moreDevices: (shown: number) => `Only ${shown} devices are shown.`,
  unnamed: 'Device without a name',
  lastContact: (at: string) => `Last contact: ${at}`,
  freeSeat: 'Free the seat',
  movesLeft: (left: number) => `Seats can be freed three times within 30 days: ${left} left.`,

  isSeatFreed: (device: string) => `Free the seat of ${device}?`,
  loses: (device: string, at: string) =>
    `${device} loses the license at its next contact. Without a network it can use the license until ${at}.`,
  hasLost: (device: string) => `${device} has no valid lease any more.`,
  usable: 'Another device can take the seat at once.',
  countsAsMove: (left: number) =>
    `Seats can be freed three times within 30 days. This is one of them; left after it: ${left}.`,
  countsNot: 'This does not count as one of the three times within 30 days.',
  keepSeat: 'Keep the seat',
  seatStays: (device: string) => `The seat of ${device} cannot be freed now`,
  inUse: (from: string) =>
    `The device is in use. Give its seat back on the device itself. If the device is lost or broken, come back after ${from}.`,
  noMoveLeft: (from: string) =>
    `Seats of this license were freed three times within 30 days. If the device stays off, its seat can be freed after ${from}.`,
  seatFreed: (device: string) => `The seat of ${device} is free.`,
  seatWasFree: 'This seat is free already.',
  back: 'Back to the license',

  offline: 'A machine without a network',
  offlineText:
    'The program on the machine writes a request: a file, a text or a QR code. Choose the file here, or paste the text. You get the answer for the machine.',
  requestFile: 'Request file',
  requestText: 'Or the text of the request',
  downloadAnswer: 'Download the answer file',
  showCode: 'Show the answer as a QR code',
  answer: 'The answer for your machine',
  leasedUntil: (at: string) => `The license is then valid on the machine until ${at}.`,
  noticed:
    'The answer contains no license: the license is disabled or has ended, or the machine has given its seat back.',
  sequenced:
    'The machine and the seller disagree about earlier requests. Install this answer, make another request on the machine, and send it here.',
  scanCode: 'Scan this code with the machine, or take the file to the machine.',
  qrCode: 'QR code of the answer',
  noCode: 'The answer is too long for a QR code. Take the file to the machine.',
  answerText: 'The answer as text',
  refusals: {
    lease_request_invalid: 'This is not a request of a machine. Choose its file, or paste the whole text.',
    license_not_found: 'The request is for another license.',
    no_seat_left: 'No seat is free. Free the seat of a device, and send the request again.',
    no_move_left:
      'Seats of this license were freed three times within 30 days. Send the request again when a seat is free.',
    activation_blocked: 'The seller has blocked this machine for the license.',
  },

  notFound: 'No license fits these entries. Compare them with the mail about your purchase.',
  expired: 'This page was open for too long. Type your license key again.',
  tooMany: (minutes: number) =>
    `There were too many requests. Wait for ${minutes === 1 ? 'one minute' : `${minutes} minutes`}, and try again.`,
  tooLarge: 'The file is too large for a request of a machine.',
  unreadable: 'This request cannot be read.',
  unavailable: 'This does not work at the moment. Try again in some minutes.',
};

export type Texts = typeof english;
