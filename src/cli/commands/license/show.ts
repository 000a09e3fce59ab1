import type { z } from 'zod';
import type { Call } from '../../client/call.ts';
import { answeredAt, dataOrNull, request, requestAndShow, type Result } from '../../client/request.ts';
import { CommandError, defineCommand, type GlobalOptions } from '../../command.ts';
import { formatFields, formatTable, instant, type Shown } from '../../format.ts';
import type { Output } from '../../output.ts';
import { provenanceHeaderNames } from '../../../domain/header-names.ts';
import { licenseKeyPositional, readLicenseKey } from '../../values.ts';
import { productObject } from '../../../wire/product.ts';
import { activationList, type ActivationObject } from '../../../wire/issuer/activation.ts';
import { activationRow, activationsPath } from '../activation/activation.ts';
import { changeRow } from './history.ts';
import { licenseFields, licensesPath, licenseView } from './license.ts';
import { type ChangeObject, type SoldLicenseObject, changeList, licenseList } from '../../../wire/license.ts';

const product = productObject.pick({ name: true, seats: true });

const shownChanges = 5;

export const command = defineCommand({
  command: 'show <key..>',
  describe: 'Show everything known about a license key',
  builder: { key: licenseKeyPositional },
  examples: [['latchkey license show ABCDE-FGHJK-LMNPQ-RSTUV', 'with its purchase and last changes']],
  epilogue: 'An agent knows no purchases or products. It shows the answer that software gets from it.',
  handler: async (args, output) => {
    const key = readLicenseKey(args.key);
    const found = await findLicense(args, key);
    const license = found?.data.licenses[0];
    // An authority does not list an unknown key, which verify reports with the usual error. Verify also asks the upstream.
    const isOfAgent = (license?.freshness ?? null) !== null;
    if (found === null || license === undefined || isOfAgent) {
      const missingSince = license?.missing_since ?? null;
      const verify = { path: '/api/v2/license/verify', query: { license_key: key } };
      return missingSince === null
        ? await requestAndShow(args, output, verify, licenseView)
        : await showMissing(args, output, verify, missingSince);
    }
    const sold = await productOf(args, license.product_link);
    const history = await lastChanges(args, license.license_key);
    const seats = await seatsOf(args, license.license_key);
    return await output.result(
      {
        license,
        product_name: sold?.name ?? null,
        seats: sold?.seats ?? null,
        seats_taken: seats.taken,
        activations: seats.activations,
        changes: history,
      },
      formatLicense(license, sold, { history, ...seats }),
      answeredAt(found.answer),
    );
  },
});

/** Shows the answer to a verify, and says `since` when the store answers 404 for the key. */
async function showMissing(
  args: GlobalOptions,
  output: Output,
  verify: Call,
  since: string,
): Promise<number> {
  const line = `The store has answered 404 for this key since ${since}.`;
  const show: typeof licenseView.show = (license, answer, hint) => {
    const fields = licenseView.show(license, answer, hint);
    const confirmedAt = Date.parse(String(answer.headers[provenanceHeaderNames.confirmedAt.toLowerCase()]));
    const isFoundAgain = confirmedAt > Date.parse(since);
    return isFoundAgain ? fields : [fields, line].flat();
  };
  try {
    return await requestAndShow(args, output, verify, { ...licenseView, show });
  } catch (error) {
    if (!(error instanceof CommandError) || error.refusal?.code !== 'license_not_found') throw error;
    throw new CommandError([...error.lines, line], error.code, error.refusal);
  }
}

/** Null: the daemon is a holder, which has no list. */
async function findLicense(
  options: GlobalOptions,
  key: string,
): Promise<Result<z.infer<typeof licenseList>> | null> {
  try {
    return await request(options, { path: licensesPath, query: { license_key: key } }, licenseList);
  } catch (error) {
    if (error instanceof CommandError && error.refusal?.code === 'not_offered_by_holder') return null;
    throw error;
  }
}

type Sold = z.infer<typeof product>;

async function productOf(options: GlobalOptions, key: string): Promise<Sold | null> {
  return await dataOrNull(options, { path: `/admin/v1/products/${encodeURIComponent(key)}` }, product);
}

const shownActivations = 20;

type Seats = { taken: number; activations: readonly ActivationObject[] };

/** The devices that have a seat. None if they cannot be listed. */
async function seatsOf(options: GlobalOptions, key: string): Promise<Seats> {
  const query = { license_key: key, has_seat: 'true', limit: shownActivations };
  try {
    const { data, answer } = await request(options, { path: activationsPath, query }, activationList);
    return { taken: Number(answer.headers['x-total-count']), activations: data.activations };
  } catch (error) {
    if (error instanceof CommandError) return { taken: 0, activations: [] };
    throw error;
  }
}

async function lastChanges(options: GlobalOptions, key: string): Promise<readonly ChangeObject[]> {
  const path = `${licensesPath}/${encodeURIComponent(key)}/history`;
  const list = await dataOrNull(options, { path, query: { limit: shownChanges } }, changeList);
  return list?.changes ?? [];
}

function formatLicense(
  license: SoldLicenseObject,
  sold: Sold | null,
  { history, taken, activations }: Seats & { history: readonly ChangeObject[] },
): Shown {
  const fields = formatFields({
    ...licenseFields(license),
    'product name': sold?.name ?? null,
    seats: taken === 0 ? null : `${taken} of ${sold?.seats ?? 'any number'} taken`,
    purchase: license.purchase_id ?? 'none: not sold here',
    refunded: instant(license.refunded_at),
  });
  return [
    fields,
    ...(activations.length === 0 ? [] : [formatTable(activations.map(activationRow))]),
    ...(history.length === 0 ? [] : [formatTable(history.map(changeRow))]),
  ];
}
