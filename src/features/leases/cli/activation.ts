import { type ActivationObject, activationObject, activationList } from '../wire/activation.ts';
import { defineList, defineRequest, pathOf, type View, request } from '../../../cli/client/request.ts';
import {
  type Command,
  positional,
  textOption,
  CommandError,
  type GlobalOptions,
  type ReadLicensePart,
} from '../../../cli/command.ts';
import {
  type Cell,
  formatFields,
  instant,
  type Tone,
  toned,
  whole,
  formatTable,
} from '../../../cli/format.ts';

export const activationsPath = '/admin/v1/activations';

const activationPositional = positional('Id of the activation, as in activation list');

const tones: Readonly<Record<ActivationObject['state'], Tone>> = {
  active: 'good',
  ended: 'faint',
  replaced: 'faint',
  blocked: 'bad',
};

/** Everything about a device. */
const activationView: View<ActivationObject> = {
  schema: activationObject,
  show: (activation) =>
    formatFields({
      ...activationRow(activation),
      'license key': whole(activation.license_key),
      product: activation.product_key,
      'device key': whole(activation.device),
      'lease ends': instant(activation.expires_at),
      created: instant(activation.created_at),
      'uses recorded': activation.uses_recorded,
      'uses returned': activation.uses_returned,
      'copied since': instant(activation.copied_at),
    }),
};

export const commands = [
  defineList({
    command: 'list',
    describe: 'List the devices that have asked for seats',
    builder: {
      license: textOption('Only of this license key'),
      product: textOption('Only of this product', 'product'),
      search: textOption(
        'Only those with this text in the key, the name or the e-mail address, from three characters on',
      ),
      state: {
        choices: ['active', 'ended', 'replaced', 'blocked'],
        describe: 'Only devices in this state',
      },
      copied: {
        type: 'boolean',
        describe: 'Only devices of whose state two copies seem to be in use',
      },
    },
    examples: [['latchkey activation list --copied', 'look for licenses that several machines share']],
    list: {
      path: activationsPath,
      member: 'activations',
      item: activationObject,
      row: (activation) => ({ ...activationRow(activation), 'license key': whole(activation.license_key) }),
    },
    query: ({ license, product, state, copied, search }) => ({
      license_key: license,
      product_key: product,
      state,
      search,
      copied: copied === undefined ? undefined : String(copied),
    }),
  }),
  defineRequest({
    command: 'show <id>',
    describe: 'Show a device that has asked for a seat',
    builder: { id: activationPositional },
    examples: [['latchkey activation show ACTIVATION_ID', 'its state, seat, lease and uses']],
    request: ({ id }) => ({ path: pathOf(activationsPath, id) }),
    view: activationView,
  }),
  defineActivationChange('end', {
    describe: 'Free the seat of a device, which may take a seat again',
    meaning: 'for example of a lost laptop',
    epilogue:
      'The seat is free at once three times in 30 days for each license, and after that when the last lease of the device ends.',
  }),
  defineActivationChange('block', {
    describe: 'Free the seat of a device, and give it no lease of the license again',
    meaning: 'for example of a device that shares its leases',
    epilogue:
      'It blocks the key of the device. A device that makes another key can take a seat: disable the license to prevent that.',
  }),
];

/** The columns of a device in a list. */
function activationRow(activation: ActivationObject): Readonly<Record<string, Cell>> {
  const { state, copied_at: copiedAt } = activation;
  return {
    activation: whole(activation.activation_id),
    device: activation.device_name ?? activation.device,
    state: [toned(state, tones[state]), ...(copiedAt === null ? [] : [toned(', copied', 'warning')])],
    seat: activation.seat_until === null ? 'none' : ['ends ', instant(activation.seat_until)],
    renewed: instant(activation.renewed_at),
  };
}

/** Declares a command that takes the seat of a device away. */
function defineActivationChange(
  change: 'end' | 'block',
  { describe, meaning, epilogue }: { describe: string; meaning: string; epilogue: string },
): Command {
  return defineRequest({
    command: `${change} <id>`,
    describe,
    builder: { id: activationPositional },
    examples: [[`latchkey activation ${change} ACTIVATION_ID`, meaning]],
    epilogue,
    request: ({ id }) => ({ method: 'POST', path: `${pathOf(activationsPath, id)}/${change}` }),
    view: activationView,
  });
}

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
