import com.hivemq.embedded.EmbeddedExtension;
import com.hivemq.embedded.EmbeddedHiveMQ;
import com.hivemq.extension.sdk.api.ExtensionMain;
import com.hivemq.extension.sdk.api.auth.SimpleAuthenticator;
import com.hivemq.extension.sdk.api.parameter.ExtensionStartInput;
import com.hivemq.extension.sdk.api.parameter.ExtensionStartOutput;
import com.hivemq.extension.sdk.api.parameter.ExtensionStopInput;
import com.hivemq.extension.sdk.api.parameter.ExtensionStopOutput;
import com.hivemq.extension.sdk.api.services.Services;
import java.nio.file.Path;

/** HiveMQ's community edition with a folder, for anybody: without an extension it refuses all. */
public class HiveMq {
    static class AllowAll implements ExtensionMain {
        public void extensionStart(ExtensionStartInput in, ExtensionStartOutput out) {
            SimpleAuthenticator all = (input, output) -> output.authenticateSuccessfully();
            Services.securityRegistry().setAuthenticatorProvider(input -> all);
        }

        public void extensionStop(ExtensionStopInput in, ExtensionStopOutput out) {}
    }

    public static void main(String[] arguments) {
        Path folder = Path.of(arguments[0]);
        EmbeddedExtension extension = EmbeddedExtension.builder()
            .withId("allow-all").withName("allow all").withVersion("1")
            .withExtensionMain(new AllowAll()).build();
        EmbeddedHiveMQ.builder()
            .withConfigurationFolder(folder.resolve("conf"))
            .withDataFolder(folder.resolve("data"))
            .withExtensionsFolder(folder.resolve("extensions"))
            .withEmbeddedExtension(extension).build().start().join();
        System.out.println("ready");
    }
}
