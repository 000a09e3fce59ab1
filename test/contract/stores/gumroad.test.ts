import { received } from '../../../src/stores/gumroad/upstream.ts';
import { readLicense, verifyAnswer } from '../../../src/stores/gumroad/wire.ts';
import { now, outcomeOf, recordedFrom, testVerdicts } from './recorded.ts';

const key = '85DB562A-C11D4B06-A2335A6B-8C079166';

testVerdicts(recordedFrom('gumroad'), ['good', 'not good', 'closed', 'missing', 'rejected', 'ambiguous'], {
  outcomeOf: (response) =>
    outcomeOf(response, { dialect: received, read: (body) => readLicense(body, key, now) }),
  answerOf: (license) => verifyAnswer(license, now),
});
