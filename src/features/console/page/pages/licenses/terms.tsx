import type { LicenseDetail, LicenseObject } from '../../../../../wire/license.ts';
import { send } from '../../api.ts';
import { shownKey } from '../../format.ts';
import { Action, type ActionProps, Field, fieldText } from '../../parts/action.tsx';
import { quoted } from '../../parts/command.tsx';
import { commandKey } from './license-actions.tsx';

/** The fields of the terms of a license, by the options of the command that do the same. */
const options = {
  expires_at: '--expires',
  entitlements: '--entitlement',
  uses_limit: '--uses-limit',
  seats: '--seats',
} as const;

type Texts = Readonly<Partial<Record<keyof typeof options, string>>>;

/** The texts of the fields that a person has changed, by their names. */
function changed(form: FormData, before: Texts): [keyof typeof options, string][] {
  const names = Object.keys(options) as (keyof typeof options)[];
  return names
    .filter((name) => form.has(name) && fieldText(form, name) !== (before[name] ?? ''))
    .map((name) => [name, fieldText(form, name)]);
}

/** The terms that a person has changed, as parameters. */
function changedTerms(form: FormData, before: Texts): object {
  const valueOf = (name: string, text: string): unknown =>
    name === 'entitlements' ? wordsOf(form) : text || 'none';
  return Object.fromEntries(changed(form, before).map(([name, text]) => [name, valueOf(name, text)]));
}

/** The entitlements in a form. The daemon refuses one that has a space. */
export function wordsOf(form: FormData): string[] {
  const words = fieldText(form, 'entitlements').split(',');
  return words.map((word) => word.trim()).filter((word) => word !== '');
}

/** The terms that a person has changed, as options of a command. */
export function changedOptions(form: FormData, before: Texts = {}): string[] {
  return changed(form, before).map(([name, text]) => `${options[name]} ${quoted(text || 'none')}`);
}

/** The end of a license, and what it unlocks. */
export function TermFields({ before = {}, empty }: { before?: Texts; empty: string }) {
  return (
    <>
      <Field
        label="Valid until"
        name="expires_at"
        type="date"
        value={before.expires_at ?? ''}
        help={`Until the end of this day (UTC); empty: ${empty}.`}
      />
      <EntitlementsField value={before.entitlements ?? ''} />
    </>
  );
}

export function EntitlementsField({ value }: { value: string }) {
  return (
    <Field
      label="Entitlements"
      name="entitlements"
      value={value}
      example="pro, export"
      help="What your software unlocks: words with commas between them."
    />
  );
}

/** What a seller does with the terms of a license, at an authority. */
export function TermActions({ detail, onDone }: { detail: LicenseDetail; onDone: () => void }) {
  return (
    <>
      {typeof detail.license.expires_at === 'string' && <Action {...renew(detail.license)} onDone={onDone} />}
      <Action {...changeTerms(detail.license)} onDone={onDone} />
    </>
  );
}

function renew({ license_key: key }: LicenseObject): ActionProps {
  return {
    label: 'Renew',
    title: `Renew ${shownKey(key)}`,
    consequence: 'The time is added to the end of the license, or to now if the license has ended.',
    command: (form) =>
      `latchkey license renew ${quoted(commandKey(key))} --for ${quoted(fieldText(form, 'for') || '1y')}`,
    run: (form) =>
      send('POST', `/admin/v1/licenses/${encodeURIComponent(key)}/renew`, { for: fieldText(form, 'for') }),
    children: (
      <Field
        label="For"
        name="for"
        value="1y"
        help="Such as 30d, 2w, 6mo or 1y."
        pattern="[1-9][0-9]{0,3}(d|w|mo|y)"
        isRequired
      />
    ),
  };
}

function changeTerms(license: LicenseObject): ActionProps {
  const { license_key: key, expires_at: end, entitlements = [], uses_limit: limit, seats } = license;
  const before = {
    expires_at: end?.slice(0, 10) ?? '',
    entitlements: entitlements.join(', '),
    uses_limit: limit?.toString() ?? '',
    seats: seats?.toString() ?? '',
  };
  return {
    label: 'Change terms',
    title: `Change the terms of ${shownKey(key)}`,
    consequence:
      'Your software gets the new terms with its next answer, and a device with its next lease. Only what you change here is changed.',
    command: (form) =>
      [`latchkey license update ${quoted(commandKey(key))}`, ...changedOptions(form, before)].join(' '),
    run: (form) => send('PUT', `/admin/v1/licenses/${encodeURIComponent(key)}`, changedTerms(form, before)),
    children: (
      <>
        <TermFields before={before} empty="for ever" />
        <Field
          label="Limit of the uses"
          name="uses_limit"
          type="number"
          value={before.uses_limit}
          help="Empty: none."
        />
        <Field
          label="Seats"
          name="seats"
          type="number"
          value={before.seats}
          help="On how many devices it works at the same time; empty: as many as its product says."
        />
      </>
    ),
  };
}
