import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Taints a member cluster of Reballast, then prints the decisions that follow from it (schedule-decided events), or
 * the rejection of the taint.
 *
 * <p>Needs Java 17 and kafka-clients 4, no code of Reballast. The wire contract is in events/WIRE.md.
 *
 * <pre>
 *   java -cp "kafka-clients-4.3.1.jar:slf4j-api-1.7.36.jar:lz4-java-1.10.2.jar" TaintCluster.java \
 *     client.properties reballast. member1 maintenance NoExecute 10 [ID]
 * </pre>
 *
 * Arguments: a file of Kafka's client properties (bootstrap.servers, and security.protocol, sasl.*, ssl.* if the
 * brokers require them), the prefix of the topics' names, the cluster, the taint's key and effect, the number of
 * seconds without a new event after which the program ends, and the event's id. To repeat the event after a failure,
 * use the same id; it then takes effect only once.
 */
public final class TaintCluster {
    private static final String SOURCE = "/examples/java";
    private static final String TAINTED = "io.reballast.cluster-tainted.v1";
    private static final String DECIDED = "io.reballast.schedule-decided.v1";
    private static final String REJECTED = "io.reballast.input-rejected.v1";

    private TaintCluster() {}

    public static void main(String[] arguments) throws IOException, InterruptedException, ExecutionException {
        if (arguments.length < 6) {
            System.err.println("TaintCluster PROPERTIES PREFIX CLUSTER KEY EFFECT SECONDS [ID]");
            System.exit(64);
        }
        Properties common = new Properties();
        try (var file = Files.newBufferedReader(Path.of(arguments[0]))) {
            common.load(file);
        }
        String prefix = arguments[1];
        String id = arguments.length > 6 ? arguments[6] : UUID.randomUUID().toString();
        var taint = new ProducerRecord<>(
                prefix + "clusters", arguments[2], data(arguments[2], arguments[3], arguments[4]));
        addHeaders(taint.headers(), id);
        try (Consumer<String, String> consumer = consumer(common)) {
            // Get the topics' ends before sending the event, so that no decision is missed.
            seekToEnds(consumer, prefix);
            RecordMetadata at;
            try (Producer<String, String> producer = producer(common)) {
                at = producer.send(taint).get();
            }
            System.out.printf("said %s/%d/%d %s%n", at.topic(), at.partition(), at.offset(), id);
            String position = String.format("clusters/%d/%d", at.partition(), at.offset());
            System.exit(follow(consumer, id, position, Duration.ofSeconds(Long.parseLong(arguments[5]))));
        }
    }

    /** The event's data; valid names need no JSON escapes, and the engine refuses invalid ones. */
    private static String data(String cluster, String key, String effect) {
        for (String word : List.of(cluster, key, effect)) {
            if (!word.matches("[A-Za-z0-9./_-]+")) {
                throw new IllegalArgumentException(word);
            }
        }
        return String.format("{\"name\":\"%s\",\"taint\":{\"key\":\"%s\",\"effect\":\"%s\"}}", cluster, key, effect);
    }

    /** A CloudEvent in binary mode: the attributes are headers. */
    private static void addHeaders(Headers headers, String id) {
        Map<String, String> attributes = Map.of(
                "ce_specversion", "1.0",
                "ce_id", id,
                "ce_source", SOURCE,
                "ce_type", TAINTED,
                "ce_time", Instant.now().toString(),
                "content-type", "application/json");
        attributes.forEach((name, value) -> headers.add(name, value.getBytes(StandardCharsets.UTF_8)));
    }

    private static Producer<String, String> producer(Properties common) {
        var settings = new Properties();
        settings.putAll(common);
        settings.put(ProducerConfig.ACKS_CONFIG, "all");
        settings.put(ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG, "true");
        settings.put(ProducerConfig.COMPRESSION_TYPE_CONFIG, "lz4");
        // No partition: this client's default partitioner uses murmur2 of the key, as required.
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    private static Consumer<String, String> consumer(Properties common) {
        var settings = new Properties();
        settings.putAll(common);
        // The engine writes decisions in transactions; aborted ones must not be read.
        settings.put(ConsumerConfig.ISOLATION_LEVEL_CONFIG, "read_committed");
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private static void seekToEnds(Consumer<String, String> consumer, String prefix) {
        List<TopicPartition> places = new ArrayList<>();
        for (String name : List.of("decisions", "rejections")) {
            consumer.partitionsFor(prefix + name)
                    .forEach(about -> places.add(new TopicPartition(about.topic(), about.partition())));
        }
        consumer.assign(places);
        consumer.endOffsets(places).forEach(consumer::seek);
    }

    /** Prints the records that follow from this event until none arrive; returns 1 if it was refused, else 0. */
    private static int follow(Consumer<String, String> consumer, String id, String position, Duration silence) {
        int status = 0;
        Instant until = Instant.now().plus(silence);
        while (Instant.now().isBefore(until)) {
            for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                String type = header(record, "ce_type");
                // Decisions have the input's id as correlation id; a rejection has its position as causation id.
                boolean decided = type.equals(DECIDED) && id.equals(header(record, "ce_correlationid"));
                boolean rejected = type.equals(REJECTED) && position.equals(header(record, "ce_causationid"));
                if (decided || rejected) {
                    System.out.printf(
                            "%s %s/%d/%d %s%n",
                            decided ? "decided" : "rejected",
                            record.topic(), record.partition(), record.offset(), record.value());
                    status = rejected ? 1 : status;
                    until = Instant.now().plus(silence);
                }
            }
        }
        return status;
    }

    private static String header(ConsumerRecord<String, String> record, String name) {
        Header found = record.headers().lastHeader(name);
        return found == null ? "" : new String(found.value(), StandardCharsets.UTF_8);
    }
}
