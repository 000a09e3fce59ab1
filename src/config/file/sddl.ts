/*
 * Access control lists of Windows as text (SDDL,
 * https://learn.microsoft.com/windows/win32/secauthz/security-descriptor-string-format).
 */

/** What one account may do with a file or directory. Entries that deny something are left out. */
export interface AccessEntry {
  /** A SID such as `S-1-5-18`, or the abbreviation of one that depends on the machine. */
  readonly account: string;
  readonly canRead: boolean;
  readonly canWrite: boolean;
  /** Whether it is only for what is created in the directory. */
  readonly isInheritOnly: boolean;
}

const everyone = 'S-1-1-0';
const system = 'S-1-5-18';
const administrators = 'S-1-5-32-544';
const creator = 'S-1-3-0';
const ownerRights = 'S-1-3-4';

/** Accounts that every machine has. Others keep their abbreviation, which no SID equals. */
const abbreviations: Readonly<Record<string, string>> = {
  WD: everyone,
  SY: system,
  BA: administrators,
  CO: creator,
  OW: ownerRights,
  AU: 'S-1-5-11',
  BU: 'S-1-5-32-545',
  LS: 'S-1-5-19',
  NS: 'S-1-5-20',
};

const readBits = 0x9000_0001n | 0x0200_0000n;
/**
 * Writing and adding (attributes, too, with which an empty directory can become a link), deleting (also in a directory),
 * changing rights or owner, and the generic rights.
 */
const writeBits = 0x5000_0000n | 0x0200_0000n | 0x000d_0156n;

const rightBits: Readonly<Record<string, bigint>> = {
  GA: 0x1000_0000n,
  GR: 0x8000_0000n,
  GW: 0x4000_0000n,
  GX: 0x2000_0000n,
  RC: 0x2_0000n,
  SD: 0x1_0000n,
  WD: 0x4_0000n,
  WO: 0x8_0000n,
  CC: 0x1n,
  DC: 0x2n,
  LC: 0x4n,
  SW: 0x8n,
  RP: 0x10n,
  WP: 0x20n,
  DT: 0x40n,
  LO: 0x80n,
  CR: 0x100n,
  FA: 0x1f_01ffn,
  FR: 0x12_0089n,
  FW: 0x12_0116n,
  FX: 0x12_00a0n,
};

/**
 * The entries of the access control list in a text; null if the text has none. What is not understood counts as an
 * entry that allows everything.
 */
export function parseSddl(text: string): readonly AccessEntry[] | null {
  const list = sectionsOf(text).find((section) => section.startsWith('D:'));
  if (list === undefined) return null;
  if (!isUnderstood(list)) return [all(everyone)];
  return entriesOf(list).flatMap(parseEntry);
}

/**
 * Whether each parenthesis of a list delimits an entry or a part of a condition. A quoted text can have parentheses that
 * hide the entries behind it, so a list with quotes is not understood. Neither is `NO_ACCESS_CONTROL`, after any flags.
 */
function isUnderstood(list: string): boolean {
  return /^D:(?:P|AR|AI)*(?:\((?:[^()"]|\((?:[^()"]|\([^()"]*\))*\))*\))*$/.test(list);
}

/** Splits a text at `O:`, `G:`, `D:` and `S:`, but not inside of entries. */
function sectionsOf(text: string): string[] {
  const sections: string[] = [];
  let depth = 0;
  for (let index = 0; index < text.length; index += 1) {
    const letter = text.charAt(index);
    if (letter === '(') depth += 1;
    else if (letter === ')') depth -= 1;
    const isStart = depth === 0 && text[index + 1] === ':' && 'OGDS'.includes(letter);
    if (isStart) sections.push('');
    if (sections.length > 0) sections[sections.length - 1] += letter;
  }
  return sections;
}

/** The entries without their parentheses. The condition of an entry has parentheses, too. */
function entriesOf(list: string): string[] {
  const entries: string[] = [];
  let depth = 0;
  for (const letter of list) {
    if (letter === ')') depth -= 1;
    if (depth > 0) entries[entries.length - 1] += letter;
    if (letter === '(') depth += 1;
    if (letter === '(' && depth === 1) entries.push('');
  }
  return entries;
}

function all(account: string): AccessEntry {
  return { account, canRead: true, canWrite: true, isInheritOnly: false };
}

function parseEntry(entry: string): readonly AccessEntry[] {
  const [type = '', flags = '', rights = '', , , name] = entry.split(';');
  if (/^(?:O|X)?D$/.test(type)) return [];
  const account = name === undefined ? everyone : (abbreviations[name] ?? name);
  const bits = parseRights(rights);
  return [
    {
      account,
      canRead: (bits & readBits) !== 0n,
      canWrite: (bits & writeBits) !== 0n,
      isInheritOnly: new Set<string>(flags.match(/../g)).has('IO'),
    },
  ];
}

function parseRights(text: string): bigint {
  if (/^(?:0x[0-9a-f]{1,8}|\d{1,10})$/i.test(text)) return BigInt(text);
  const names = text.match(/../g) ?? [];
  if (text.length % 2 !== 0) return writeBits | readBits;
  return names.reduce((bits, name) => bits | (rightBits[name] ?? writeBits | readBits), 0n);
}

/** Who besides the user, SYSTEM, administrators and single services may read or write. */
export interface Strangers {
  readonly readers: readonly string[];
  readonly writers: readonly string[];
}

/**
 * The strangers of a list. `user`: the SID of this user. `isOwnerKnown`: only this user, SYSTEM or an administrator can
 * own the file. Another owner could change the rights, unless an entry limits the rights of owners.
 */
export function findStrangers(
  entries: readonly AccessEntry[],
  { user, isOwnerKnown }: { readonly user: string; readonly isOwnerKnown: boolean },
): Strangers {
  const isTrusted = ({ account, isInheritOnly }: AccessEntry): boolean =>
    account === user ||
    account === system ||
    account === administrators ||
    // The built-in administrator.
    account === 'LA' ||
    // One service each; TrustedInstaller is one of them.
    /^S-1-5-80-\d+-\d+-\d+-\d+-\d+$/.test(account) ||
    (account === creator && isInheritOnly) ||
    (account === ownerRights && isOwnerKnown);
  const strangers = entries.filter((entry) => !isTrusted(entry));
  const isLimited =
    isOwnerKnown || entries.some((each) => each.account === ownerRights && !each.isInheritOnly);
  const owner = isLimited ? [] : [ownerRights];
  return {
    readers: unique(strangers.filter(({ canRead }) => canRead).map(({ account }) => account)),
    writers: unique([
      ...strangers.filter(({ canWrite }) => canWrite).map(({ account }) => account),
      ...owner,
    ]),
  };
}

function unique(accounts: readonly string[]): string[] {
  return [...new Set(accounts)];
}
