import { dataOrNull, requestAndShow, defineRequest, pathOf, type View } from '../../../cli/client/request.ts';
import {
  CommandError,
  defineCommand,
  type GlobalOptions,
  type Group,
  positional,
  type ReadLicensePart,
  textOption,
} from '../../../cli/command.ts';
import { licensesPath, licenseView } from '../../../cli/commands/license-view.ts';
import { formatFields, whole } from '../../../cli/format.ts';
import { hintFor } from '../../../cli/hint.ts';
import { licenseKeyPositional, readLicenseKey } from '../../../cli/values.ts';
import { licenseDetail } from '../../../wire/license.ts';
import { forgottenObject, type ForgottenObject } from '../wire/customer.ts';

const exampleKey = 'ABCDE-FGHJK-LMNPQ-RSTUV';

export const license: Pick<Group, 'commands'> = {
  commands: [
    defineRequest({
      command: 'rekey <key..>',
      describe: 'Give a license another key, such as in place of a leaked one',
      builder: { key: licenseKeyPositional, 'new-key': textOption('The new key; default: a generated one') },
      examples: [[`latchkey license rekey ${exampleKey}`, 'the old key is disabled from now on']],
      epilogue:
        'The license keeps its uses, purchase, history and seats. Send the new key to the buyer: a device goes on in its seat once the new key is typed in there. The old key cannot be enabled again.',
      request: ({ key, newKey }) => ({
        method: 'POST',
        path: `${pathOf(licensesPath, readLicenseKey(key))}/rekey`,
        json: { license_key: newKey },
      }),
      view: {
        ...licenseView,
        show: (...shown) =>
          [
            licenseView.show(...shown),
            'The old key is disabled. Send the new key to the buyer: no e-mail is sent.',
          ].flat(),
      },
    }),
    defineRequest({
      command: 'transfer <key..>',
      describe: 'Give a license another buyer',
      builder: {
        key: licenseKeyPositional,
        email: { ...textOption('E-mail address of the new buyer'), demandOption: true },
        'free-seats': { type: 'boolean', describe: 'Free the seats of the devices, and remove their names' },
      },
      examples: [[`latchkey license transfer ${exampleKey} --email new@example.com`, 'with its devices']],
      request: ({ key, email, freeSeats }) => ({
        method: 'POST',
        path: `${pathOf(licensesPath, readLicenseKey(key))}/transfer`,
        json: { buyer_email: email, free_seats: freeSeats },
      }),
      view: licenseView,
    }),
    defineRequest({
      command: 'set-uses <key> <uses>',
      describe: 'Set the count of the uses of a license',
      builder: {
        key: positional('License key'),
        uses: { type: 'number', demandOption: true, describe: 'The new count', group: 'Positionals:' },
      },
      examples: [[`latchkey license set-uses ${exampleKey} 0`, 'begins again']],
      request: ({ key, uses }) => ({
        method: 'PUT',
        path: `${pathOf(licensesPath, key)}/uses`,
        json: { uses },
      }),
      view: licenseView,
    }),
  ],
};

/** The license key that took the place of a key. */
export const licensePart: ReadLicensePart = async (options, licenseKey) => {
  const path = pathOf(licensesPath, licenseKey);
  const replaced = await dataOrNull(options, { path }, licenseDetail.pick({ replaced_by: true }));
  const key = replaced?.replaced_by ?? null;
  // The new key has the purchase.
  const fields = key === null ? {} : { 'replaced by': whole(key), purchase: null };
  return { json: { replaced_by: key }, fields, blocks: [] };
};

const forgottenView: View<ForgottenObject> = {
  schema: forgottenObject,
  show: ({ licenses, devices }) =>
    licenses === 0
      ? 'No license has this address.'
      : [
          formatFields({ 'licenses without the address': licenses, 'devices without a name': devices }),
          'Backups that were made before still have both.',
        ],
};

export const customer: Pick<Group, 'commands'> = {
  commands: [
    defineCommand({
      command: 'forget <email>',
      describe: 'Remove the e-mail address of a person, and the names of the devices',
      builder: {
        email: positional('E-mail address of the buyer, in any letter case'),
        yes: { type: 'boolean', describe: 'Do not ask' },
      },
      examples: [['latchkey customer forget buyer@example.com', 'asks for the address once more']],
      epilogue:
        'The licenses stay, with their keys, uses and seats. It cannot be undone. Agents have the change at their next read of each license.',
      handler: async (args, output) => {
        await confirmForget(args);
        const call = {
          method: 'POST',
          path: '/admin/v1/customers/forget',
          json: { buyer_email: args.email },
        } as const;
        return await requestAndShow(args, output, call, forgottenView);
      },
    }),
  ],
};

/** Has the address typed in again. Throws if it is not. */
async function confirmForget(
  args: GlobalOptions & { readonly email: string; readonly yes: boolean | undefined },
): Promise<void> {
  if (args.yes === true) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new CommandError([
      'latchkey: to forget a person cannot be undone',
      `Without a terminal to ask at: ${hintFor(args)('customer forget EMAIL --yes')}`,
      'Nothing was changed.',
    ]);
  }
  const { text } = await import('@clack/prompts');
  const message = 'This cannot be undone. Type the e-mail address again:';
  // Standard output is for the result.
  const typed = await text({ output: process.stderr, message });
  if (typeof typed === 'string' && typed.trim() === args.email.trim()) return;
  throw new CommandError(['latchkey: cancelled', 'Nothing was changed.']);
}
