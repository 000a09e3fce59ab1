import { request } from '../../../cli/client/request.ts';
import { CommandError, type GlobalOptions, type ReadLicensePart } from '../../../cli/command.ts';
import { formatTable } from '../../../cli/format.ts';
import { activationList, type ActivationObject } from '../wire/activation.ts';
import { activationRow, activationsPath } from './activation.ts';

const shownActivations = 20;

type Taken = { taken: number; activations: readonly ActivationObject[] };

/** The devices that have a seat of a license. */
export const licensePart: ReadLicensePart = async (options, licenseKey, seats) => {
  const { taken, activations } = await seatsOf(options, licenseKey);
  return {
    json: { seats_taken: taken, activations },
    fields: { seats: taken === 0 ? null : `${taken} of ${seats ?? 'any number'} taken` },
    blocks: activations.length === 0 ? [] : [formatTable(activations.map(activationRow))],
  };
};

/** None if they cannot be listed. */
async function seatsOf(options: GlobalOptions, licenseKey: string): Promise<Taken> {
  const query = { license_key: licenseKey, has_seat: 'true', limit: shownActivations };
  try {
    const { data, answer } = await request(options, { path: activationsPath, query }, activationList);
    return { taken: Number(answer.headers['x-total-count']), activations: data.activations };
  } catch (error) {
    if (error instanceof CommandError) return { taken: 0, activations: [] };
    throw error;
  }
}
